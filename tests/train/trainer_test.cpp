#include "purine/train/trainer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "purine/core/json_helpers.h"
#include "purine/io/file.h"
#include "purine/train/job_file.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/train/image_set.h"

namespace purine::train {
namespace {

using test::error_text;

/// Keeps what it is told, and can ask for a stop.
class Recorder final : public Listener {
 public:
  void step(const StepReport& report) override {
    if (report.step == stop_at_step) stop.request_stop();
  }
  void evaluated(const EvaluationReport& report) override {
    evaluations.push_back(report.step);
    if (report.step == stop_after_evaluation) stop.request_stop();
  }
  void note(std::string_view text) override { notes.emplace_back(text); }

  std::int64_t stop_at_step = -1;
  std::int64_t stop_after_evaluation = -1;
  std::stop_source stop;
  std::vector<std::int64_t> evaluations;
  std::vector<std::string> notes;
};

struct Options {
  bool resume = false;
  std::vector<JobSetting> settings = {};
  std::int64_t stop_after = 0;
  Location device = {};
};

/// A job of 3 epochs of 6 steps, and its runs.
class TrainerTest : public testing::Test {
 protected:
  TrainerTest() { test::write_idx_set(folder_ / "set"); }

  LoadedJob load(const std::string& run, const std::vector<JobSetting>& settings = {}) {
    const std::string text = R"(
[model]
name = "small_convnet"
[data]
folder = ")" + (folder_ / "set").string() +
                             R"("
batch = 4
[optimizer]
learning_rate = 0.01
[train]
epochs = 3
report_every = 1
run_folder = ")" + (folder_ / run).string() +
                             R"("
)";
    return parse_job(text, "job.toml", settings);
  }
  EndReport run(const std::string& name, Recorder& recorder, const Options& options = {}) {
    Runtime runtime({.workers = 2, .devices = {options.device}});
    std::vector<JobSetting> settings = options.settings;
    settings.push_back({"parallel.devices=" + options.device.text(), "test"});
    Trainer trainer(
        runtime, load(name, settings),
        {.resume = options.resume, .stop_after = options.stop_after, .stop = recorder.stop.get_token()});
    trainer.add(recorder);
    return trainer.run();
  }
  std::vector<nlohmann::json> metrics(const std::string& run, const std::string& phase) {
    std::vector<nlohmann::json> lines;
    std::istringstream stream(io::read_file(folder_ / run / "metrics.jsonl"));
    for (std::string line; std::getline(stream, line);) {
      nlohmann::json entry = parse_json(line);
      if (entry.at("phase") == phase) lines.push_back(std::move(entry));
    }
    return lines;
  }
  std::vector<std::int64_t> steps(const std::string& run, const std::string& phase) {
    std::vector<std::int64_t> steps;
    for (const nlohmann::json& entry : metrics(run, phase)) steps.push_back(entry.at("step"));
    return steps;
  }
  std::string checkpoint(const std::string& run, std::int64_t step) {
    return io::read_file(folder_ / run / "checkpoints" / fmt::format("step-{:08}.safetensors", step));
  }

  test::TemporaryFolder folder_;
};

TEST_F(TrainerTest, AnInterruptAtAnEpochsEndLosesNoEvaluation) {
  Recorder whole;
  run("whole", whole);
  EXPECT_EQ(whole.evaluations, (std::vector<std::int64_t>{6, 12, 18}));
  for (const std::int64_t step : {6, 18}) {  // within the run, and at its end
    const std::string name = "run-" + std::to_string(step);
    Recorder first;
    first.stop_at_step = step;
    EXPECT_EQ(run(name, first).end, RunEnd::interrupted);
    EXPECT_NE(checkpoint(name, step), checkpoint("whole", step)) << "it isn't evaluated";
    Recorder second;
    const EndReport end = run(name, second, {.resume = true});
    EXPECT_EQ(end.end, RunEnd::finished);
    EXPECT_EQ(second.evaluations.front(), step) << "first of all";
    EXPECT_EQ(steps(name, "test"), (std::vector<std::int64_t>{6, 12, 18}));
    EXPECT_EQ(steps(name, "epoch"), (std::vector<std::int64_t>{6, 12, 18}));
    EXPECT_EQ(checkpoint(name, step), checkpoint("whole", step)) << "now it is";
    EXPECT_EQ(checkpoint(name, 18), checkpoint("whole", 18));
    EXPECT_EQ(metrics(name, "test").back().at("loss"), metrics("whole", "test").back().at("loss"));
  }
}

TEST_F(TrainerTest, AnEvaluationIsNotMadeTwice) {
  Recorder first;
  first.stop_after_evaluation = 6;
  EXPECT_EQ(run("run", first).end, RunEnd::interrupted);
  Recorder second;
  run("run", second, {.resume = true});
  EXPECT_EQ(second.evaluations, (std::vector<std::int64_t>{12, 18}));
  EXPECT_EQ(steps("run", "test"), (std::vector<std::int64_t>{6, 12, 18}));
}

TEST_F(TrainerTest, ACompleteRunSaysSoAndStaysAsItIs) {
  Recorder first;
  const EndReport before = run("run", first);
  EXPECT_EQ(before.trained_steps, 18);
  const std::string metrics_before = io::read_file(before.paths.metrics());
  const std::string checkpoint_before = checkpoint("run", 18);
  Recorder second;
  const EndReport after = run("run", second, {.resume = true});
  EXPECT_EQ(after.end, RunEnd::finished);
  EXPECT_EQ(after.trained_steps, 0);
  ASSERT_TRUE(after.test.has_value());
  EXPECT_EQ(after.test->accuracy, before.test->accuracy);
  EXPECT_EQ(after.test->loss, before.test->loss);
  EXPECT_EQ(after.test->images, 8);
  EXPECT_EQ(second.evaluations, std::vector<std::int64_t>{});
  EXPECT_EQ(second.notes,
            std::vector<std::string>{
                "the run is complete: all of its 18 steps were done before, and nothing is left "
                "to train; more train.epochs or train.steps go on"});
  EXPECT_EQ(io::read_file(before.paths.metrics()), metrics_before);
  EXPECT_EQ(checkpoint("run", 18), checkpoint_before);
}

TEST_F(TrainerTest, AResumedRunMayGoOnOnAnotherDevice) {
  // Copies to and from the device are the only difference, also where norms are summed over all gradients.
  const std::vector<JobSetting> settings = {{"optimizer.clip_norm=1", "test"},
                                            {"optimizer.weight_decay=0.01", "test"}};
  Recorder recorder;
  run("whole", recorder, {.settings = settings});
  const Location emulated{0, DeviceKind::emu, 0};
  EXPECT_EQ(run("run", recorder, {.settings = settings, .stop_after = 8, .device = emulated}).step, 8);
  EXPECT_EQ(run("run", recorder, {.resume = true, .settings = settings}).end, RunEnd::finished);
  EXPECT_EQ(checkpoint("run", 18), checkpoint("whole", 18));
}

TEST_F(TrainerTest, TracesOfAResumedRunReplaceNone) {
  const auto traced_from = [](int step) {
    return std::vector<JobSetting>{{"trace.steps=2", "test"},
                                   {"trace.first_step=" + std::to_string(step), "test"}};
  };
  const std::filesystem::path trace = folder_ / "run" / "trace.json";
  Recorder recorder;
  EXPECT_EQ(run("run", recorder, {.settings = traced_from(1), .stop_after = 8}).trace, trace);
  const std::string before = io::read_file(trace);
  const std::filesystem::path second = folder_ / "run" / "trace-from-step-8.json";
  EXPECT_EQ(run("run", recorder, {.resume = true, .settings = traced_from(8), .stop_after = 11}).trace,
            second);
  EXPECT_EQ(run("run", recorder, {.resume = true, .settings = traced_from(8)}).trace, trace)
      << "it traced none itself";
  EXPECT_EQ(io::read_file(trace), before);
  for (const auto& [path, iteration] : {std::pair{trace, 1}, {second, 8}}) {
    std::set<int> iterations;
    const nlohmann::json json = parse_json(io::read_file(path));
    for (const nlohmann::json& event : json.at("traceEvents")) {
      if (event.at("ph") == "X") iterations.insert(event.at("args").at("iteration").get<int>());
    }
    EXPECT_EQ(iterations, (std::set<int>{iteration, iteration + 1})) << path;
  }
}

TEST_F(TrainerTest, ATraceThatCannotBeWrittenDoesNotEndTheRun) {
  Recorder recorder;
  run("run", recorder, {.stop_after = 8});
  const std::filesystem::path trace = folder_ / "run" / "trace-from-step-8.json";
  std::filesystem::create_symlink(trace, trace);  // to itself: nobody can write there
  const std::vector<JobSetting> settings = {{"trace.steps=2", "test"}, {"trace.first_step=8", "test"}};
  const EndReport report = run("run", recorder, {.resume = true, .settings = settings});
  EXPECT_EQ(report.end, RunEnd::finished);
  EXPECT_EQ(report.trace, std::nullopt);
  const std::string error =
      "[file] " + trace.string() + ": cannot look at the file: Too many levels of symbolic links";
  ASSERT_TRUE(report.trace_error);
  EXPECT_EQ(report.trace_error->what(), error);
  EXPECT_EQ(recorder.notes, std::vector<std::string>{"the trace is lost: " + error});
  run("whole", recorder);
  EXPECT_EQ(checkpoint("run", 18), checkpoint("whole", 18));
}

TEST_F(TrainerTest, ATraceThatTheRunDoesNotReachIsTold) {
  Recorder recorder;
  run("run", recorder, {.settings = {{"trace.steps=2", "test"}, {"trace.first_step=18", "test"}}});
  EXPECT_EQ(recorder.notes,
            std::vector<std::string>{
                "no step will be traced: trace.first_step is 18, and the run ends after 18 steps"});
}

TEST_F(TrainerTest, MeansAfterAResumptionAreOfTheStepsSince) {
  const std::vector<JobSetting> every_four = {{"train.report_every=4", "test"}};
  Recorder recorder;
  run("whole", recorder);
  run("run", recorder, {.settings = every_four, .stop_after = 10});
  run("run", recorder, {.resume = true, .settings = every_four});
  EXPECT_EQ(steps("run", "train"), (std::vector<std::int64_t>{4, 8, 12, 16, 18}));
  const std::vector<nlohmann::json> of_steps = metrics("whole", "train");
  const double mean = (of_steps[10].at("loss").get<double>() + of_steps[11].at("loss").get<double>()) / 2;
  EXPECT_NEAR(metrics("run", "train")[2].at("loss").get<double>(), mean, 1e-12) << "steps 11 and 12";
}

TEST_F(TrainerTest, ALossThatIsNotFiniteIsToldInStepsFromOne) {
  Recorder recorder;
  const std::vector<JobSetting> settings = {{"optimizer.learning_rate=1e30", "test"},
                                            {"optimizer.name=sgd", "test"}};
  const std::string text = error_text([&] { run("run", recorder, {.settings = settings}); });
  EXPECT_TRUE(std::regex_match(
      text,
      std::regex(R"(\[training\] step 2: the (loss|gradient of small_convnet/\S+) is (NaN|-?infinity)( at )"
                 R"(\[.*\] of f32\[.*\])?, so the step was not taken; hint: training has diverged: try a )"
                 R"(lower optimizer\.learning_rate, a longer optimizer\.warmup_epochs, or gradient )"
                 R"(clipping \(optimizer\.clip_norm\))")))
      << text;
}

}  // namespace
}  // namespace purine::train
