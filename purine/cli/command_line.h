// The command line's options, as CLI11 holds them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "purine/cli/requests.h"

namespace purine::cli {

inline constexpr const char* devices_help = "the devices to run on, as parallel.devices: cpu:0, or emu:0-3";

// The most that a job's keys allow.
inline constexpr std::int64_t most_steps = 1'000'000'000'000;
inline constexpr std::int64_t most_images = 1 << 20;
inline constexpr std::int64_t most_classes = 1 << 24;
inline constexpr std::int64_t most_pixels = 1 << 14;  // of a side

/// A check of whole numbers that adds nothing to the help text.
CLI::Validator whole(std::int64_t least, std::int64_t greatest = std::numeric_limits<std::int64_t>::max());

/// A check of names, which the help text lists.
CLI::Validator one_of(const std::vector<std::string>& names);

/// Everything that CLI11 writes into, and the application that does.
class CommandLine {
 public:
  CommandLine();

  Request parse(int argc, const char* const* argv);
  std::vector<std::pair<std::string, std::string>> help_texts();

 private:
  CLI::App* add(CLI::App* parent, std::string name, std::string summary, std::string footer,
                std::function<Request()> make);
  void add_train();
  void add_evaluate();
  void add_predict();
  void add_graph();
  void add_devices();
  void add_bench();
  void add_simulate();
  void add_plan();
  void add_target(CLI::App* command, TargetRequest& target);
  void add_check();
  void add_data();
  void add_why();
  void add_report();
  void add_settings(CLI::App* command, std::vector<train::JobSetting>& settings);
  void add_run_options(CLI::App* command, RunRequest& run);
  void add_scheme_options(CLI::App* command, RunRequest& run);
  [[noreturn]] void explain(const CLI::ParseError& error);
  void refuse_empty_values();

  CLI::App app_;
  std::vector<std::pair<CLI::App*, std::function<Request()>>> commands_;
  TrainRequest train_;
  EvaluateRequest evaluate_;
  PredictRequest predict_;
  GraphRequest graph_;
  DevicesRequest devices_;
  BenchRequest bench_;
  SimulateRequest simulate_;
  PlanRequest plan_;
  CheckRequest check_;
  DataCheckRequest data_check_;
  WhyRequest why_;
  ReportRequest report_;
};

}  // namespace purine::cli
