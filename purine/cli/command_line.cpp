#include "purine/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "purine/core/error.h"
#include "purine/core/nearest.h"
#include "purine/core/version.h"
#include "purine/train/job_keys.h"

namespace purine::cli {
namespace {

constexpr std::size_t help_columns = 100;

Error command_error(std::string_view command, std::string_view message, std::string_view hint) {
  return Error("command", message, hint).at(command);
}

GraphFormat graph_format(std::string_view name) {
  if (name == "dot") return GraphFormat::dot;
  if (name == "json") return GraphFormat::json;
  return name == "svg" ? GraphFormat::svg : GraphFormat::text;
}

}  // namespace

CLI::Validator whole(std::int64_t least, std::int64_t greatest) {
  return CLI::Validator(
      [=](const std::string& text) {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool good = error == std::errc() && end == text.data() + text.size();
        if (good && value >= least && value <= greatest) return std::string();
        return fmt::format("must be a whole number from {} to {}, got {}", least, greatest, text);
      },
      "");
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  return CLI::Validator(
      [=](const std::string& text) {
        if (std::find(names.begin(), names.end(), text) != names.end()) return std::string();
        const std::string near = nearest(text, names);
        return fmt::format("must be one of {}, got {}{}", fmt::join(names, ", "), text,
                           near.empty() ? "" : fmt::format(" (did you mean {}?)", near));
      },
      fmt::format("{{{}}}", fmt::join(names, ",")));
}

CommandLine::CommandLine() : app_("Trains neural networks on this machine's devices.", "purine") {
  app_.set_version_flag("--version", fmt::format("purine {}\n", build_id()),
                        "print the version and, where it is known, the commit it was built from");
  app_.set_help_flag("-h,--help", "print this help");
  app_.require_subcommand(1);
  app_.get_formatter()->column_width(30);
  app_.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app_.get_formatter()->label("TEXT", "");
  app_.get_formatter()->label("REQUIRED", "");
  app_.get_formatter()->label("Positionals", "Arguments");
  app_.footer(
      "`purine COMMAND --help` tells all about a command.\n\n"
      "Exit status: 0 all went well; 1 something failed while it ran; 2 the command line or the job file\n"
      "is wrong, and nothing ran; 130 interrupted, after everything was saved. An error is one line on\n"
      "standard error.");
  add_train();
  add_evaluate();
  add_predict();
  add_graph();
  add_devices();
  add_bench();
  add_simulate();
  add_plan();
  add_check();
  add_why();
  add_report();
  add_data();
}

CLI::App* CommandLine::add(CLI::App* parent, std::string name, std::string summary, std::string footer,
                           std::function<Request()> make) {
  CLI::App* command = parent->add_subcommand(std::move(name), std::move(summary));
  command->group("Commands");
  command->footer(std::move(footer));
  if (make) commands_.emplace_back(command, std::move(make));
  return command;
}

void CommandLine::add_settings(CLI::App* command, std::vector<train::JobSetting>& settings) {
  command
      ->add_option_function<std::vector<std::string>>(
          "--set",
          [&settings](const std::vector<std::string>& assignments) {
            for (const std::string& text : assignments) settings.push_back({text, "--set " + text});
          },
          "set a key of the job, after its file; may be given again")
      ->type_name("SECTION.KEY=VALUE")
      ->allow_extra_args(false);
}

void CommandLine::add_run_options(CLI::App* command, RunRequest& run) {
  command->add_option("--devices", run.devices, devices_help)->type_name("DEVICES");
  command->add_option("--workers", run.workers, "threads that run operators; default: one for each core")
      ->type_name("N")
      ->check(whole(1, 1024));
}

void CommandLine::add_scheme_options(CLI::App* command, RunRequest& run) {
  command->add_option("--scheme", run.scheme, "how several devices share the work, as parallel.scheme")
      ->type_name("SCHEME");
  command->add_option("--mesh", run.mesh, "how they lie in a grid, as parallel.mesh: data=2,model=2")
      ->type_name("AXES");
}

void CommandLine::add_train() {
  CLI::App* command = add(
      &app_, "train", "train the network of a job file",
      fmt::format(
          "Examples:\n"
          "  purine train job.toml\n"
          "  purine train job.toml --set optimizer.learning_rate=0.1 --set data.batch=128 --new-run\n"
          "  purine train job.toml --resume\n"
          "  purine train job.toml --devices emu:0-3 --set parallel.scheme=sharded\n"
          "  purine train --resume --run-folder runs/job-2\n"
          "  mpirun -n 2 --host node1,node2 --bind-to none purine train job.toml\n\n"
          "A run writes into its run folder, runs/NAME for NAME.toml: the whole job (job.toml),\n"
          "checkpoints, metrics (metrics.jsonl, and events for TensorBoard) and the trace. A folder that\n"
          "exists is neither used nor overwritten without --resume. Ctrl-C finishes the steps under way and\n"
          "saves them; a second one ends the run at once. Where nobody reads its output any more, a run "
          "goes\n"
          "on in silence.\n\n"
          "Keys of a job file:\n\n{}",
          train::job_help(help_columns)),
      [this] {
        if (!train_.job && !(train_.resume && train_.run_folder)) {
          throw command_error("purine train", "there is no job file",
                              "name one; only --resume with --run-folder goes without");
        }
        return train_;
      });
  command->add_option("JOB", train_.job, "the job file; --resume with --run-folder goes without");
  add_settings(command, train_.settings);
  command
      ->add_option_function<std::string>(
          "--seed",
          [this](const std::string& seed) {
            train_.settings.push_back({"train.seed=" + seed, "--seed " + seed});
          },
          "seed of all random numbers, as train.seed")
      ->type_name("N");
  add_run_options(command, train_.run);
  command->add_option("--run-folder", train_.run_folder, "the run folder, as train.run_folder")
      ->type_name("FOLDER");
  CLI::Option* new_run = command->add_flag(
      "--new-run", train_.new_run, "where the run folder exists, take the next free one: runs/NAME-2, -3, …");
  command
      ->add_flag("--resume", train_.resume,
                 "go on with the run in the run folder, from its newest checkpoint")
      ->excludes(new_run);
  command
      ->add_option("--stop-after", train_.stop_after,
                   "save and stop after this many steps of the whole run, to go on with --resume")
      ->type_name("STEPS")
      ->check(whole(1, most_steps));
  command->add_flag("--report", train_.report,
                    "leave report.html in the run folder (see purine report), of 5 steps from step 10\n"
                    "unless the job's [trace] says otherwise");
  command->add_flag("--json", train_.json, "print JSON lines, one for each event, in place of text");
}

void CommandLine::add_evaluate() {
  CLI::App* command =
      add(&app_, "eval", "measure a trained network on its test set",
          "Examples:\n"
          "  purine eval runs/fashion-mnist\n"
          "  purine eval runs/fashion-mnist --set data.folder=/other/images --json\n"
          "  purine eval job.toml --checkpoint runs/job/checkpoints/step-00001000.safetensors\n\n"
          "Without --checkpoint the newest one of the run folder is measured.",
          [this] { return evaluate_; });
  command->add_option("TARGET", evaluate_.target, "a run folder, or a job file")->required();
  command->add_option("--checkpoint", evaluate_.checkpoint, "the checkpoint to measure")->type_name("FILE");
  command
      ->add_option("--run-folder", evaluate_.run_folder, "where a job's checkpoints are, as train.run_folder")
      ->type_name("FOLDER");
  add_settings(command, evaluate_.settings);
  add_run_options(command, evaluate_.run);
  command->add_flag("--json", evaluate_.json, "print one JSON object");
}

void CommandLine::add_predict() {
  CLI::App* command =
      add(&app_, "predict", "tell the classes of images",
          "Examples:\n"
          "  purine predict --run runs/fashion-mnist shoe.png shirt.jpg\n"
          "  purine predict --run runs/fashion-mnist --top 1 --json *.png\n\n"
          "Images are JPEG or PNG files of any size. They are treated as the job's test set is; where that\n"
          "has one size, the shorter side is resized and the middle taken. Colours become grey, or grey\n"
          "colours, as the network needs.",
          [this] { return predict_; });
  command->add_option("IMAGE", predict_.images, "image files")->required();
  command->add_option("--run", predict_.run_folder, "the run folder of the trained network")
      ->required()
      ->type_name("FOLDER");
  command->add_option("--checkpoint", predict_.checkpoint, "its checkpoint; default: the newest")
      ->type_name("FILE");
  command->add_option("--top", predict_.top, "classes to tell, the likeliest first; default: 5")
      ->type_name("N")
      ->check(whole(1, most_classes));
  add_run_options(command, predict_.run);
  command->add_flag("--json", predict_.json, "print a JSON object for each image, a line each");
}

void CommandLine::add_graph() {
  CLI::App* command =
      add(&app_, "graph", "show the graph of a job or a model",
          "Examples:\n"
          "  purine graph lenet\n"
          "  purine graph lenet --inference --svg --output lenet.svg\n"
          "  purine graph googlenet --inference --svg --output googlenet.svg\n"
          "  purine graph lenet --batch 8 --devices emu:0-1 --scheme tensor\n"
          "  purine graph job.toml --json\n\n"
          "Formats: text (a line for each vertex), dot (graphviz's language), json, and svg (drawn by\n"
          "graphviz, whose command `dot` must be there). A model comes with loss, gradients and updates,\n"
          "or alone with --inference. Of a large graph a drawing shows the outer scopes, each as a box with\n"
          "the number of its operators, and opens the largest ones as far as there is room.",
          [this] { return graph_; });
  command->add_option("TARGET", graph_.target, "a job file, or a model's name")->required();
  const auto take = [this](GraphFormat format) {
    if (graph_.format) {
      throw Error("command", "names its format twice", "give one of --format, --svg and --json")
          .at("purine graph");
    }
    graph_.format = format;
  };
  command
      ->add_option_function<std::string>(
          "--format", [take](const std::string& name) { take(graph_format(name)); },
          "text, dot, json or svg; default: text")
      ->check(one_of({"text", "dot", "json", "svg"}))
      ->type_name("FORMAT");
  command->add_flag_callback(
      "--svg", [take] { take(GraphFormat::svg); }, "draw it, as --format svg");
  command->add_flag_callback(
      "--json", [take] { take(GraphFormat::json); }, "print one JSON object, as --format json");
  command->add_option("--batch", graph_.batch, "images of a batch; default: the job's, or 1")
      ->type_name("N")
      ->check(whole(1, most_images));
  command->add_flag("--inference", graph_.inference, "the network alone, as it predicts");
  command
      ->add_option("--vertices", graph_.most_vertices,
                   "of svg and dot: fold scopes until at most so many are drawn, 0 for none folded;\n"
                   "default: for svg what can be read, 20 to 120")
      ->type_name("N")
      ->check(whole(0, most_steps));
  command->add_option("--output", graph_.output, "write to this file")->type_name("FILE");
  command->add_option("--devices", graph_.run.devices, devices_help)->type_name("DEVICES");
  add_scheme_options(command, graph_.run);
  add_settings(command, graph_.settings);
}

void CommandLine::add_devices() {
  CLI::App* command =
      add(&app_, "devices", "list this machine's devices",
          "Examples:\n"
          "  purine devices\n"
          "  purine devices --json\n\n"
          "Emulated devices (emu:0, emu:1, …) are not there until they are asked for: --devices\n"
          "emu:0 makes one, of this machine's cores and memory. They have queues, copies and memory\n"
          "as an accelerator has, to try a program for many devices out; emulated.memory_gib and\n"
          "other keys of a job say how much and how fast.",
          [this] { return devices_; });
  command->add_flag("--json", devices_.json, "print one JSON object");
}

void CommandLine::add_check() {
  CLI::App* command = add(
      &app_, "check", "try a job out, on one device or in every scheme for several",
      "Examples:\n"
      "  purine check job.toml\n"
      "  purine check job.toml --schemes --devices emu:0-3\n"
      "  purine check job.toml --schemes --steps 5 --json\n\n"
      "Without --schemes it opens the data, builds the graphs of training and evaluation for the job's\n"
      "devices, plans their memory and runs a step. With it, it runs a few steps in every scheme that\n"
      "the devices allow, from the same weights and with the same images, and prints how far the weights\n"
      "are from those of one device. No run folder is made. The exit status is 1 if a difference is past\n"
      "its tolerance.",
      [this] { return check_; });
  command->add_option("JOB", check_.job, "the job file, or a run folder")->required();
  CLI::Option* schemes =
      command->add_flag("--schemes", check_.schemes, "compare all schemes with one device");
  command
      ->add_flag("--double", check_.in_double,
                 "compute in double precision: slowly, with next to no rounding")
      ->needs(schemes);
  command->add_option("--steps", check_.steps, "steps to run; default: 1, with --schemes 3 in each")
      ->type_name("N")
      ->check(whole(0, most_steps));
  add_settings(command, check_.settings);
  add_run_options(command, check_.run);
  command->add_flag("--json", check_.json, "print one JSON object");
}

void CommandLine::add_data() {
  CLI::App* data = add(&app_, "data", "look at data sets", "", {});
  data->require_subcommand(1);
  CLI::App* command = add(
      data, "check", "read every image of a data set and report the broken ones",
      "Examples:\n"
      "  purine data check /usr/share/datasets/fashion-mnist\n"
      "  purine data check photographs --json\n\n"
      "The set may be of any format of a job file. The exit status is 1 if anything is broken or missing;\n"
      "what is only odd is told.",
      [this] { return data_check_; });
  command->add_option("FOLDER", data_check_.folder, "the data set's folder")->required();
  command->add_flag("--json", data_check_.json, "print one JSON object");
}

namespace {

// The command that was given, as far as it is known, and its name: `purine data check`.
std::pair<CLI::App*, std::string> innermost(CLI::App& app) {
  CLI::App* command = &app;
  std::string name = "purine";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  return {command, name};
}

std::vector<CLI::App*> subcommands(CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> words_of(CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  for (const CLI::App* inner : subcommands(command)) words.push_back(inner->get_name());
  return words;
}

}  // namespace

void CommandLine::explain(const CLI::ParseError& error) {
  const auto [command, name] = innermost(app_);
  const bool wants_command = !subcommands(*command).empty();
  std::string hint = fmt::format("see {} --help", name);
  if (const std::vector<std::string> left = app_.remaining(true); !left.empty()) {
    const std::string word = left.front().substr(0, left.front().find('='));
    if (const std::string meant = nearest(word, words_of(*command)); !meant.empty()) {
      hint = fmt::format("did you mean '{}'?", meant);
    }
    const std::string_view what = word.starts_with('-') ? "unknown option"
                                  : wants_command       ? "unknown command"
                                                        : "too many arguments, from";
    throw command_error(name, fmt::format("{} '{}'", what, word), hint);
  }
  if (wants_command && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    throw command_error(name, "a command is missing", hint);
  }
  throw command_error(name, error.what(), hint);
}

// As of a script's variable that isn't set.
void CommandLine::refuse_empty_values() {
  const auto [command, name] = innermost(app_);
  for (const CLI::Option* option : command->get_options()) {
    const std::vector<std::string>& values = option->results();
    if (std::find(values.begin(), values.end(), "") == values.end()) continue;
    throw command_error(name, option->get_name() + " is empty",
                        option->get_positional() ? "name one" : "give a value, or leave it out");
  }
}

Request CommandLine::parse(int argc, const char* const* argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::CallForVersion& call) {
    return TextRequest{call.what()};
  } catch (const CLI::CallForHelp&) {
    return TextRequest{app_.help()};
  } catch (const CLI::ParseError& error) {
    explain(error);
  }
  refuse_empty_values();
  for (const auto& [command, make] : commands_) {
    if (command->parsed()) return make();
  }
  throw std::logic_error("a command line without a command was accepted");
}

std::vector<std::pair<std::string, std::string>> CommandLine::help_texts() {
  std::vector<std::pair<std::string, std::string>> texts = {{"purine", app_.help()}};
  for (const auto& [command, make] : commands_) {
    const std::string parent = command->get_parent() == &app_ ? "purine" : "purine data";
    texts.emplace_back(parent + " " + command->get_name(), command->help(parent));
  }
  return texts;
}

Request parse_command_line(int argc, const char* const* argv) {
  return CommandLine().parse(argc, argv);
}

std::vector<std::pair<std::string, std::string>> help_texts() {
  return CommandLine().help_texts();
}

}  // namespace purine::cli
