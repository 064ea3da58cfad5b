#include "purine/train/progress.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace purine::train {
namespace {

/// A file in memory that gives back what was printed.
class Output {
 public:
  io::TextOutput& output() { return output_; }
  std::string text() {
    std::fflush(file_);
    std::rewind(file_);
    std::string text;
    std::array<char, 4096> buffer{};
    while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file_)) {
      text.append(buffer.data(), count);
    }
    return text;
  }
  ~Output() { std::fclose(file_); }

 private:
  std::FILE* file_ = std::tmpfile();
  io::TextOutput output_{file_};
};

RunReport run_report() {
  RunReport report;
  report.job.model.name = "lenet";
  report.title = "digits";
  report.paths = {"runs/digits"};
  report.parameters = 431080;
  report.training_images = 1000;
  report.test_images = 200;
  report.classes = 10;
  report.channels = 1;
  report.height = report.width = 28;
  report.steps_per_epoch = 10;
  report.steps = 20;
  report.workers = 2;
  report.peak_bytes = 12'345'678;
  return report;
}

TEST(ProgressTest, DurationsAndSharesReadWell) {
  EXPECT_EQ(duration_text(0.04), "0.0 s");
  EXPECT_EQ(duration_text(9.94), "9.9 s");
  EXPECT_EQ(duration_text(48.4), "48 s");
  EXPECT_EQ(duration_text(185), "3:05");
  EXPECT_EQ(duration_text(2 * 3600 + 7 * 60 + 9), "2:07:09");
  EXPECT_EQ(percent_text(0.91424), "91.42%");
}

TEST(ProgressTest, WritesPlainLinesWithoutATerminal) {
  Output output;
  {
    Progress progress(output.output(), {});
    progress.started(run_report());
    progress.step({.step = 1, .epoch = 0, .samples = 64, .loss = 2.3, .accuracy = 0.1, .seconds = 0.1});
    progress.progress({.step = 5,
                       .epoch = 0,
                       .loss = 1.25,
                       .accuracy = 0.5,
                       .learning_rate = 0.01,
                       .images_per_second = 5120.4,
                       .wait_share = 0.031,
                       .seconds_left = 75});
    progress.epoch({.step = 10, .epoch = 0, .loss = 1.0, .accuracy = 0.75, .seconds = 12});
    progress.evaluated(
        {.step = 10, .epoch = 0, .images = 200, .loss = 0.5, .accuracy = 0.8125, .seconds = 1.5});
    progress.saved("runs/digits/checkpoints/step-00000010.safetensors", 10);
    progress.note("left out a.jpg: it is broken");
  }
  EXPECT_EQ(
      output.text(),
      "digits: lenet with 431,080 parameters; 1,000 training and 200 test images of 1 x 28 x 28, 10 "
      "classes\n"
      "20 steps, 10 an epoch, of 64 images; momentum, learning rate 0.01; 2 workers, 12.3 MB of memory\n"
      "writing to runs/digits\n"
      "epoch 1/2  step 5/20  loss 1.2500  accuracy 50.0%  5,120 images/s  1:15 left  3% waiting for "
      "data\n"
      "epoch 1/2: training loss 1.0000, accuracy 75.00%, 12 s\n"
      "epoch 1/2: test loss 0.5000, accuracy 81.25%, 1.5 s\n"
      "step 10: saved runs/digits/checkpoints/step-00000010.safetensors\n"
      "left out a.jpg: it is broken\n");
}

TEST(ProgressTest, SaysWhichDevicesShareTheWork) {
  Output output;
  {
    Progress progress(output.output(), {});
    RunReport start = run_report();
    start.devices = {Location::parse("emu:0"), Location::parse("emu:1")};
    start.placement = "data parallelism over emu:0-1 (data=2)";
    progress.started(start);
    EndReport end;
    end.paths = {"runs/digits"};
    end.training_seconds = 4;
    end.trained_images = 2000;
    end.devices = 2;
    end.placement = start.placement;
    progress.ended(end);
  }
  const std::string text = output.text();
  EXPECT_NE(text.find("\n2 devices: data parallelism over emu:0-1 (data=2)\nwriting to runs/digits\n"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find("\n500 images/s in training over all 2 devices, data parallelism over emu:0-1 (data=2)\n"),
      std::string::npos)
      << text;
}

TEST(ProgressTest, DrawsABarWithinTheColumnsOfATerminal) {
  Output output;
  {
    Progress progress(output.output(), {.terminal = true, .columns = 130});
    progress.started(run_report());
    progress.step({.step = 5,
                   .epoch = 0,
                   .samples = 100,
                   .loss = 1.5,
                   .accuracy = 0.5,
                   .learning_rate = 0.01,
                   .seconds = 0.5,
                   .wait_seconds = 0.05});
    progress.epoch({.step = 10, .epoch = 0, .loss = 1.0, .accuracy = 0.75, .seconds = 12});
  }
  const std::string text = output.text();
  const std::size_t bar = text.find("\repoch 1/2 [");
  ASSERT_NE(bar, std::string::npos) << text;
  const std::string line = text.substr(bar + 1, text.find('\033', bar) - bar - 1);
  EXPECT_LT(line.size(), 130u);
  EXPECT_NE(line.find("> "), std::string::npos) << line;
  EXPECT_TRUE(line.ends_with(
      "] step 5/20  loss 1.5000  accuracy 50.0%  200 images/s  7.5 s left  10% waiting for data"))
      << line;
  // The bar goes before a line comes.
  EXPECT_TRUE(text.ends_with("\r\033[Kepoch 1/2: training loss 1.0000, accuracy 75.00%, 12 s\n")) << text;
}

TEST(ProgressTest, ANarrowTerminalGetsAShorterLine) {
  Output output;
  {
    Progress progress(output.output(), {.terminal = true, .columns = 40});
    progress.started(run_report());
    progress.step({.step = 5, .epoch = 0, .samples = 100, .loss = 1.5, .accuracy = 0.5, .seconds = 0.5});
  }
  const std::string text = output.text();
  const std::size_t bar = text.find("\repoch 1/2");
  ASSERT_NE(bar, std::string::npos) << text;
  EXPECT_EQ(text.substr(bar + 1, text.find('\033', bar) - bar - 1).size(), 39u);
}

TEST(ProgressTest, TellsWhereTheResultsLie) {
  Output output;
  {
    Progress progress(output.output(), {});
    progress.started(run_report());
    EndReport report;
    report.paths = {"runs/digits"};
    report.step = 20;
    report.trained_steps = 20;
    report.test = EvaluationReport{.step = 20, .epoch = 1, .images = 10000, .loss = 0.25, .accuracy = 0.9142};
    report.checkpoint = "runs/digits/checkpoints/step-00000020.safetensors";
    report.trace = "runs/digits/trace.json";
    report.skipped_images = 2;
    report.training_seconds = 61;
    report.prediction = RunPrediction{.measured_step_seconds = 0.02,
                                      .predicted_step_seconds = 0.018,
                                      .one_device_images_per_second = 100,
                                      .speed_up = 1.6,
                                      .efficiency = 0.8};
    progress.ended(report);
  }
  const std::string text = output.text();
  EXPECT_TRUE(text.ends_with(
      "finished 20 steps; 1:01 of training\n"
      "a step took 20.00 ms and was predicted to take 18.00 ms (-10.0%); 1.60 times one device "
      "with its share of the batch, efficiency 80.0%\n"
      "2 broken images were left out\n"
      "test accuracy  91.42% of 10,000 images (loss 0.2500)\n"
      "checkpoint     runs/digits/checkpoints/step-00000020.safetensors\n"
      "metrics        runs/digits/metrics.jsonl\n"
      "TensorBoard    runs/digits/events\n"
      "trace          runs/digits/trace.json\n"))
      << text;
}

TEST(ProgressTest, ANoteStaysOneLine) {
  Output output;
  {
    Progress progress(output.output(), {});
    progress.note("left out set/new\nline.png: \033[2J");
  }
  EXPECT_EQ(output.text(), "left out set/new\\nline.png: \\x1b[2J\n");
}

TEST(ProgressTest, ARunThatWasCompleteDoesNotSeemToTrain) {
  Output output;
  {
    Progress progress(output.output(), {});
    RunReport start = run_report();
    start.first_step = start.steps;
    progress.started(start);
    EndReport report;
    report.paths = {"runs/digits"};
    report.step = 20;
    progress.ended(report);
  }
  const std::string text = output.text();
  EXPECT_EQ(text.find("going on"), std::string::npos) << text;
  EXPECT_EQ(text.find("finished"), std::string::npos) << text;
}

}  // namespace
}  // namespace purine::train
