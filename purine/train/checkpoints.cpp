#include "purine/train/checkpoints.h"

#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <vector>

#include "purine/core/error.h"
#include "purine/core/json_helpers.h"
#include "purine/core/json_problem.h"
#include "purine/core/version.h"
#include "purine/train/run_folder.h"

namespace purine::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* task_key = "task";
constexpr const char* sums_key = "epoch_sums";
constexpr const char* data_key = "data_fingerprint";
constexpr const char* graph_key = "graph";
constexpr const char* evaluation_key = "evaluation";

// A double to the bit.
Json exactly(double value) {
  return std::bit_cast<std::uint64_t>(value);
}
double exactly(const Json& json) {
  return std::bit_cast<double>(json.get<std::uint64_t>());
}

std::string hexadecimal(std::uint64_t bits) {
  return fmt::format("{:016x}", bits);
}

// Parses an entry of the manifest that make_manifest wrote.
template <typename Function>
auto read_entry(const io::Manifest& manifest, const std::filesystem::path& path, const char* key,
                Function&& function) {
  const auto entry = manifest.extra.find(key);
  if (entry == manifest.extra.end()) {
    throw Error("checkpoint", fmt::format("has no entry '{}'", key), "it is not one of `purine train`")
        .at(path.string());
  }
  try {
    return function(parse_json(entry->second));
  } catch (const Json::exception& error) {
    throw Error("checkpoint", fmt::format("its entry '{}' {}", key, json_problem(entry->second, error)))
        .at(path.string());
  }
}

}  // namespace

io::Manifest make_manifest(const Job& job, const Task& task, const EpochSums& sums,
                           std::uint64_t data_fingerprint, const GraphIdentity& graph) {
  io::Manifest manifest;
  manifest.seed = static_cast<std::uint64_t>(job.train.seed);
  manifest.graph_hash = graph.hash;
  manifest.job = job_identity(job);
  manifest.extra[task_key] = Json{
      {"image", {task.image.channels, task.image.height, task.image.width}},
      {"classes", task.classes},
      {"class_names",
       task.class_names}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  manifest.extra[sums_key] = Json{
      {"loss", exactly(sums.loss)},
      {"correct", exactly(sums.correct)},
      {"samples", sums.samples}}.dump();
  manifest.extra[data_key] = Json(hexadecimal(data_fingerprint)).dump();
  Json parts = Json::object();
  for (const auto& [name, part] : graph.parts) parts[name] = {part.count, part.hash};
  manifest.extra[graph_key] = parts.dump();
  return manifest;
}

void set_evaluation(io::Manifest& manifest, const EvaluationReport& report) {
  manifest.score = report.accuracy;
  Json json = {{"epoch", report.epoch},
               {"images", report.images},
               {"loss", exactly(report.loss)},
               {"accuracy", exactly(report.accuracy)}};
  if (report.top5) json["top5"] = exactly(*report.top5);
  manifest.extra[evaluation_key] = json.dump();
}

Task task_of(const io::Manifest& manifest, const std::filesystem::path& path) {
  return read_entry(manifest, path, task_key, [](const Json& json) {
    Task task;
    const Json& image = json.at("image");
    task.image = {image.at(0).get<std::int64_t>(), image.at(1).get<std::int64_t>(),
                  image.at(2).get<std::int64_t>()};
    task.classes = json.at("classes").get<std::int64_t>();
    task.class_names = json.at("class_names").get<std::vector<std::string>>();
    return task;
  });
}

EpochSums epoch_sums_of(const io::Manifest& manifest, const std::filesystem::path& path) {
  return read_entry(manifest, path, sums_key, [](const Json& json) {
    EpochSums sums;
    sums.loss = exactly(json.at("loss"));
    sums.correct = exactly(json.at("correct"));
    sums.samples = json.at("samples").get<std::int64_t>();
    return sums;
  });
}

std::optional<EvaluationReport> evaluation_of(const io::Manifest& manifest,
                                              const std::filesystem::path& path) {
  if (!manifest.extra.contains(evaluation_key)) return std::nullopt;
  return read_entry(manifest, path, evaluation_key, [&](const Json& json) {
    EvaluationReport report;
    report.step = manifest.iteration;
    report.epoch = json.at("epoch").get<std::int64_t>();
    report.images = json.at("images").get<std::int64_t>();
    report.loss = exactly(json.at("loss"));
    report.accuracy = exactly(json.at("accuracy"));
    if (json.contains("top5")) report.top5 = exactly(json.at("top5"));
    return report;
  });
}

namespace {

// It has only what decides the results, which the data set's folder doesn't.
Job job_of(const io::Manifest& manifest, const std::filesystem::path& path, const std::string& data_folder) {
  const std::vector<JobSetting> settings = {{"data.folder=" + data_folder, path.string()}};
  return parse_job(manifest.job, path.string(), settings).job;
}

}  // namespace

void check_network(const io::Manifest& manifest, const std::filesystem::path& path, const Job& job) {
  std::string trained;
  try {
    trained = job_of(manifest, path, job.data.folder).model.name;
  } catch (const Error&) {
    return;  // written by another version, which had other keys; its variables tell
  }
  if (trained == job.model.name) return;
  throw Error("checkpoint", fmt::format("is of the network {}, and the job's is {}", trained, job.model.name),
              "name a checkpoint of the job's network, or a job with the checkpoint's")
      .at(path.string());
}

void check_resumable(const io::Manifest& manifest, const std::filesystem::path& path, const LoadedJob& job,
                     std::uint64_t data_fingerprint, const GraphIdentity& graph) {
  check_resumable(job_of(manifest, path, job.job.data.folder), job);
  const auto stored =
      read_entry(manifest, path, data_key, [](const Json& json) { return json.get<std::string>(); });
  if (stored != hexadecimal(data_fingerprint)) {
    throw job.error("data.folder", "holds another training set than the run was started with",
                    "name the folder of the same set, or start another run");
  }
  if (manifest.graph_hash == graph.hash) return;
  const auto before = read_entry(manifest, path, graph_key, [&](const Json& json) {
    GraphIdentity identity{.hash = manifest.graph_hash};
    for (const auto& [name, part] : json.items()) {
      identity.parts[name] = {part.at(0).get<std::int64_t>(), part.at(1).get<std::uint64_t>()};
    }
    return identity;
  });
  throw Error(
      "checkpoint",
      fmt::format("its graph is not the one that this job makes now: {}", difference(before, graph)),
      manifest.purine_version == build_id()
          ? "start another run"
          : fmt::format(
                "it was written by purine {}, and this is {}; go on with that one, or start another run",
                manifest.purine_version, build_id()))
      .at(path.string());
}

std::filesystem::path find_checkpoint(const std::filesystem::path& run_folder,
                                      const std::optional<std::filesystem::path>& file) {
  if (file) return *file;
  const auto latest = io::latest_checkpoint(RunPaths{run_folder}.checkpoints());
  if (latest) return latest->path;
  std::error_code error;
  const bool exists = std::filesystem::is_directory(run_folder, error);
  throw Error("run folder", exists ? "holds no checkpoint yet" : "does not exist",
              "name a run's folder, or a checkpoint with --checkpoint")
      .at(run_folder.string());
}

}  // namespace purine::train
