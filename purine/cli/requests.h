// What a command line asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "purine/train/job_file.h"

namespace purine::cli {

/// What the commands that run operators have in common.
struct RunRequest {
  std::string devices;  ///< a list as parse_devices reads it; empty: as the job says, or cpu:0
  std::string scheme;   ///< how several share the work, as parallel.scheme; not all commands take it
  std::string mesh;     ///< as parallel.mesh
  int workers = 0;      ///< 0: as the job says, or one for each core
};

struct TrainRequest {
  std::optional<std::string> job;
  std::vector<train::JobSetting> settings;
  RunRequest run;
  std::optional<std::string> run_folder;
  bool new_run = false;
  bool resume = false;
  std::int64_t stop_after = 0;
  bool report = false;
  bool json = false;
};

struct EvaluateRequest {
  std::string target;  ///< a job file or a run folder
  std::vector<train::JobSetting> settings;
  RunRequest run;
  std::optional<std::string> run_folder;
  std::optional<std::string> checkpoint;
  bool json = false;
};

struct PredictRequest {
  std::string run_folder;
  std::optional<std::string> checkpoint;
  std::vector<std::string> images;
  RunRequest run;
  int top = 5;
  bool json = false;
};

enum class GraphFormat : std::uint8_t { text, dot, json, svg };

struct GraphRequest {
  std::string target;  ///< a job file or a model
  std::vector<train::JobSetting> settings;
  std::optional<GraphFormat> format;  ///< none: text
  std::int64_t batch = 0;             ///< 0: the job's, or 1
  bool inference = false;
  std::optional<std::int64_t> most_vertices;  ///< of a drawing; 0: all
  RunRequest run;
  std::optional<std::string> output;
};

struct DevicesRequest {
  bool json = false;
};

struct BenchRequest {
  std::string model;
  std::int64_t batch = 32;
  std::int64_t steps = 10;
  std::int64_t warm_up = 2;
  std::vector<std::int64_t> image;  ///< channels, height, width; empty: what the model is made for
  std::int64_t classes = 0;         ///< 0: what the model is made for
  bool inference = false;
  std::int64_t seed = 1;
  std::optional<std::string> trace;
  bool ops = false;                 ///< print what each operator takes
  std::string by = "path";          ///< with ops: how operators make one line: path, shape or type
  std::optional<std::string> save;  ///< write what each operator takes to this file
  std::optional<std::string> report;
  std::string scheduling = "auto";       ///< as train.scheduling
  std::string convolutions = "fastest";  ///< as train.convolutions
  double memory_limit = 0;               ///< as train.memory_limit
  std::string optimizer = "momentum";    ///< as optimizer.name
  RunRequest run;
  bool json = false;
};

/// A job on a cluster that need not be there.
struct TargetRequest {
  std::string command;  ///< for messages: `purine simulate`
  std::string target;   ///< a job file or a model
  std::string cluster;
  std::vector<train::JobSetting> settings;
  std::int64_t batch = 0;            ///< 0: the job's
  std::optional<std::string> costs;  ///< a trace
  RunRequest run;
};

struct SimulateRequest {
  TargetRequest target;
  std::int64_t steps = 6;
  std::int64_t warm_up = 2;
  std::optional<std::string> trace;
  bool barrier = false;
  bool no_priorities = false;
  bool json = false;
};

struct PlanRequest {
  TargetRequest target;
  int top = 5;
  bool all = false;
  std::optional<std::string> output;
  bool json = false;
};

struct CheckRequest {
  std::string job;
  std::vector<train::JobSetting> settings;
  RunRequest run;
  bool schemes = false;
  bool in_double = false;             ///< with schemes: compute in double precision
  std::optional<std::int64_t> steps;  ///< default: 3 in each scheme, else 1
  bool json = false;
};

struct DataCheckRequest {
  std::string folder;
  bool json = false;
};

struct WhyRequest {
  std::vector<std::string> traces;  ///< files, or a run folder
  bool json = false;
};

struct ReportRequest {
  std::vector<std::string> traces;  ///< files, or a run folder
  std::optional<std::string> metrics;
  std::optional<std::string> job;
  std::optional<std::string> output;
};

/// A text that was asked for: help, or the version.
struct TextRequest {
  std::string text;
};

using Request = std::variant<TrainRequest, EvaluateRequest, PredictRequest, GraphRequest, DevicesRequest,
                             BenchRequest, SimulateRequest, PlanRequest, CheckRequest, DataCheckRequest,
                             WhyRequest, ReportRequest, TextRequest>;

/// Reads a command line. Throws Error("command", …) where it makes no sense.
Request parse_command_line(int argc, const char* const* argv);

/// The help texts of all commands, by their names (`purine`, `purine train`, `purine data check`).
std::vector<std::pair<std::string, std::string>> help_texts();

}  // namespace purine::cli
