// The commands that measure, simulate and explain.
#include <fmt/format.h>

#include "purine/cli/command_line.h"

namespace purine::cli {
namespace {

// Of train.memory_limit, but 0.
CLI::Validator megabytes() {
  constexpr double most = 1e9;
  return CLI::Validator(
      [=](const std::string& text) {
        double value = 0;
        const bool good = CLI::detail::lexical_cast(text, value);
        if (good && value > 0 && value <= most) return std::string();
        return fmt::format("must be a number above 0 and at most {:.0f}, got {}", most, text);
      },
      "");
}

// `3,224,224`.
std::vector<std::int64_t> read_image_size(const std::string& text) {
  std::vector<std::int64_t> extents;
  for (const std::string& word : CLI::detail::split(text, ',')) {
    std::int64_t extent = 0;
    if (!CLI::detail::lexical_cast(word, extent) || extent < 1 || extent > most_pixels) extents.resize(4);
    extents.push_back(extent);
  }
  if (extents.size() != 3) {
    throw CLI::ValidationError(
        "--image", fmt::format("must be like 3,224,224, each from 1 to {}, got {}", most_pixels, text));
  }
  return extents;
}

}  // namespace

void CommandLine::add_bench() {
  CLI::App* command = add(
      &app_, "bench", "measure how fast a model trains on synthetic images",
      "Examples:\n"
      "  purine bench googlenet --batch 32 --steps 10 --json\n"
      "  purine bench lenet --batch 64 --workers 1 --inference\n"
      "  purine bench googlenet_bn --ops --by type\n"
      "  purine bench googlenet_bn --steps 4 --report googlenet.html\n"
      "  purine bench alexnet --devices emu:0-3 --scheme hybrid\n"
      "  mpirun -n 2 --host a,b --bind-to none purine bench googlenet_bn --batch 32\n\n"
      "A step is forward, loss, backward and an update, on the same random batch, which the\n"
      "devices of all processes share. Rank 0 prints; of each rank it says how long data moved to it and\n"
      "from it, and how much of that time no operator ran there (exposed). The JSON object has model,\n"
      "batch, steps, image, classes, parameters, inference, devices, scheme, mesh, workers,\n"
      "images_per_s_median, images_per_s_best, peak_bytes, which was planned before the first step,\n"
      "run_again, how many operators --memory-limit makes run again for the backward pass,\n"
      "scheduling, how workers share operators and what was predicted of each way (docs/command-line.md),\n"
      "ready_s, the seconds that freezing the graph and making everything ready for it took, and\n"
      "ranks: the bytes of each, of all variables (variable_bytes) and of those that are not learnt\n"
      "(state_bytes), and over several processes its times and what it sent and received.\n\n"
      "--ops prints a line for each operator that a CPU worker ran, the one that took the most time first:\n"
      "milliseconds of one core in a step, all parts together (the median), their share of all operators,\n"
      "the rates of computing and of moving memory, as the operator's contract counts both, and the share\n"
      "of the roofline: of what one core can do at most, multiply-adds or bytes, measured in the same run\n"
      "while all workers' cores do the same. An algorithm with fewer operations than the definition, or\n"
      "data that are still in the cache, can have more than 100%. In JSON these are machine, operators,\n"
      "and busy and peak: the workers' share of busy time, and all operations of a step over the most that\n"
      "their cores can do; on CPUs of one process also dispatcher: the time that such a step takes whose\n"
      "operators do nothing, as a share of the step's. Recording costs about 1%. docs/command-line.md tells\n"
      "the format of --save.",
      [this] { return bench_; });
  command->add_option("MODEL", bench_.model, "the model's name")->required();
  command->add_option("--batch", bench_.batch, "images of a step; default: 32")
      ->type_name("N")
      ->check(whole(1, most_images));
  command->add_option("--steps", bench_.steps, "steps that are timed; default: 10")
      ->type_name("N")
      ->check(whole(1, most_steps));
  command->add_option("--warm-up", bench_.warm_up, "steps before those; default: 2")
      ->type_name("N")
      ->check(whole(0, most_steps));
  command
      ->add_option_function<std::string>(
          "--image", [this](const std::string& text) { bench_.image = read_image_size(text); },
          "channels, height, width; default: what the model is for")
      ->type_name("C,H,W");
  command->add_option("--classes", bench_.classes, "outputs; default: what the model is for")
      ->type_name("N")
      ->check(whole(1, most_classes));
  command->add_flag("--inference", bench_.inference, "the network alone, as it predicts");
  command->add_option("--seed", bench_.seed, "seed of weights and images; default: 1")
      ->type_name("N")
      ->check(whole(0));
  command
      ->add_option("--trace", bench_.trace,
                   "write a trace of the timed steps; that of rank N to NAME.rankN.EXTENSION")
      ->type_name("FILE");
  command
      ->add_option("--report", bench_.report,
                   "write a page of them for a browser (see purine report), and the trace beside it\n"
                   "as NAME.json unless --trace names it")
      ->type_name("FILE");
  CLI::Option* ops = command->add_flag("--ops", bench_.ops, "print what each operator takes");
  command->add_option("--by", bench_.by, "what makes one line of --ops: path (default), shape or type")
      ->type_name("WHAT")
      ->needs(ops)
      ->check(one_of({"path", "shape", "type"}));
  command->add_option("--save", bench_.save, "write what each operator takes to a file, for simulations")
      ->type_name("FILE");
  command->add_option("--scheduling", bench_.scheduling, "auto, side_by_side or divided, as train.scheduling")
      ->type_name("HOW")
      ->check(one_of({"auto", "side_by_side", "divided"}));
  command
      ->add_option("--convolutions", bench_.convolutions,
                   "fastest, measured or direct, as train.convolutions")
      ->type_name("HOW")
      ->check(one_of({"fastest", "measured", "direct"}));
  command
      ->add_option("--memory-limit", bench_.memory_limit,
                   "megabytes that a step may need, as train.memory_limit")
      ->type_name("MB")
      ->check(megabytes());
  command->add_option("--optimizer", bench_.optimizer, "the update rule; default: momentum")
      ->type_name("NAME")
      ->check(one_of({"sgd", "momentum", "nesterov", "adam", "adamw"}));
  add_run_options(command, bench_.run);
  add_scheme_options(command, bench_.run);
  command->add_flag("--json", bench_.json, "print one JSON object");
}

void CommandLine::add_target(CLI::App* command, TargetRequest& target) {
  target.command = "purine " + command->get_name();
  command->add_option("TARGET", target.target, "a job file, or a model's name")->required();
  command->add_option("--cluster", target.cluster, "the cluster file")->required()->type_name("FILE");
  command->add_option("--batch", target.batch, "images of a step, of all devices together, as data.batch")
      ->type_name("N")
      ->check(whole(1, most_images));
  command
      ->add_option("--workers", target.run.workers,
                   "threads of each host that run operators on CPUs; default: one for each core")
      ->type_name("N")
      ->check(whole(1, 1024));
  command
      ->add_option(
          "--costs", target.costs,
          "what operators of its shapes take: a file of purine bench --save, or its trace with one worker")
      ->type_name("FILE");
  add_settings(command, target.settings);
}

void CommandLine::add_plan() {
  CLI::App* command = add(&app_, "plan", "find the scheme that trains a job the fastest on a cluster",
                          "Examples:\n"
                          "  purine plan alexnet --batch 128 --cluster clusters/four-hosts-1gbit.toml\n"
                          "  purine plan job.toml --cluster clusters/gpus-8.toml --output parallel.toml\n\n"
                          "Simulates one device, one host, and all schemes on all devices, as purine "
                          "simulate does, and prints the\n"
                          "fastest, and the section [parallel] for a job file. The batch is the same in all "
                          "of them. Accelerators\n"
                          "are named sim:0, … in it, whatever their kind is.",
                          [this] { return plan_; });
  add_target(command, plan_.target);
  command->add_option("--top", plan_.top, "plans to print, the fastest first; default: 5")
      ->type_name("N")
      ->check(whole(1, 1000));
  command->add_flag("--all", plan_.all, "print why others can't be");
  command->add_option("--output", plan_.output, "write the section to this file")->type_name("FILE");
  command->add_flag("--json", plan_.json, "print one JSON object");
}

void CommandLine::add_simulate() {
  CLI::App* command = add(
      &app_, "simulate", "tell how fast a job would train on a cluster that need not be there",
      "Examples:\n"
      "  purine simulate googlenet --batch 384 --cluster clusters/gpus-2014.toml\n"
      "  purine simulate job.toml --cluster clusters/gpus-8.toml --scheme sharded\n"
      "  purine bench lenet --workers 1 --trace lenet.json\n"
      "  purine simulate lenet --batch 32 --cluster clusters/two-cores.toml --costs lenet.json\n\n"
      "Runs the dispatchers of all hosts in virtual time: what starts when is as in a real run, but nothing\n"
      "is computed and no tensor has memory. Without --costs, operators take what their floating-point\n"
      "operations and bytes take on the cluster's devices. docs/simulator.md has the cluster file's keys,\n"
      "what is modelled, and how far it can be trusted.",
      [this] { return simulate_; });
  add_target(command, simulate_.target);
  command
      ->add_option("--devices", simulate_.target.run.devices,
                   "the devices to take; default: all of the cluster")
      ->type_name("DEVICES");
  add_scheme_options(command, simulate_.target.run);
  command->add_flag("--barrier", simulate_.barrier,
                    "let a step begin only when the one before it has ended everywhere");
  command->add_flag("--no-priorities", simulate_.no_priorities,
                    "let what is ready take turns by when it could begin, not by how urgent it is");
  command->add_option("--steps", simulate_.steps, "steps that count; default: 6")
      ->type_name("N")
      ->check(whole(1, most_steps));
  command->add_option("--warm-up", simulate_.warm_up, "steps before those; default: 2")
      ->type_name("N")
      ->check(whole(0, most_steps));
  command
      ->add_option("--trace", simulate_.trace, "write a trace of these steps, in virtual time, a file a rank")
      ->type_name("FILE");
  command->add_flag("--json", simulate_.json, "print one JSON object");
}

void CommandLine::add_why() {
  CLI::App* command =
      add(&app_, "why", "tell why a step takes as long as it does",
          "Examples:\n"
          "  purine bench googlenet_bn --trace trace.json && purine why trace.json\n"
          "  purine why trace.json trace.rank1.json\n"
          "  purine why runs/fashion-mnist --json\n\n"
          "A trace is what `purine bench --trace`, `purine simulate --trace` or a job's [trace] writes.\n"
          "This names its critical path: the chain of operators, transfers and waits that the time of a\n"
          "step consists of; what share of it each kind has; what takes the most, with a hint; by\n"
          "replaying the trace in virtual time, what faster devices or a faster network would change; and,\n"
          "by simulating the job, what a larger batch or another scheme would. Rank 0's file brings in\n"
          "those of the other ranks that lie beside it.",
          [this] { return why_; });
  command->add_option("TRACE", why_.traces, "trace files, one for each rank, or a run folder")->required();
  command->add_flag("--json", why_.json, "print one JSON object");
}

void CommandLine::add_report() {
  CLI::App* command = add(
      &app_, "report", "make a page of a run, for a browser",
      "Examples:\n"
      "  purine report runs/fashion-mnist\n"
      "  purine report trace.json trace.rank1.json --output report.html\n\n"
      "The page is one file and needs no network: why a step takes so long, the timeline of all ranks with\n"
      "zoom and search, how transfers and computing overlap, memory over time, loss and accuracy, the\n"
      "graph, the job and the machine. A run folder has all of it; with trace files alone, --metrics and\n"
      "--job add the curves and the job. Without --output it is report.html in the run folder, or beside\n"
      "the trace, NAME.html for NAME.json.",
      [this] { return report_; });
  command->add_option("TRACE", report_.traces, "trace files, one for each rank, or a run folder")->required();
  command->add_option("--metrics", report_.metrics, "a run's metrics.jsonl")->type_name("FILE");
  command->add_option("--job", report_.job, "its job file")->type_name("FILE");
  command->add_option("--output", report_.output, "write to this file")->type_name("FILE");
}

}  // namespace purine::cli
