#include "purine/io/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "purine/core/error.h"
#include "purine/core/json_helpers.h"
#include "purine/core/json_problem.h"
#include "purine/core/version.h"
#include "purine/io/atomic_file.h"
#include "purine/io/crc32c.h"
#include "purine/io/file.h"
#include "purine/io/safetensors.h"

namespace purine::io {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t format_version = 1;
constexpr std::string_view manifest_key = "purine.manifest";
constexpr std::string_view checksum_key = "purine.checksum";
constexpr std::string_view name_start = "step-";
constexpr std::string_view name_end = ".safetensors";

Error checkpoint_error(std::string_view message, std::string_view hint = {}) {
  return Error("checkpoint", message, hint);
}

std::string file_name(std::int64_t iteration) {
  return fmt::format("{}{:08}{}", name_start, iteration, name_end);
}

/// The iteration that a file is named after; nothing if it isn't exactly such a name.
std::optional<std::int64_t> iteration_of(std::string_view name) {
  if (!name.starts_with(name_start) || !name.ends_with(name_end)) return std::nullopt;
  std::int64_t iteration = -1;
  std::from_chars(name.data() + name_start.size(), name.data() + name.size(), iteration);
  if (iteration < 0 || name != file_name(iteration)) return std::nullopt;
  return iteration;
}

std::string manifest_text(const Manifest& manifest) {
  Json json = {{"format", format_version},
               {"purine", build_id()},
               {"iteration", manifest.iteration},
               {"epoch", manifest.epoch},
               {"position", manifest.position},
               {"seed", manifest.seed},
               {"graph", fmt::format("{:016x}", manifest.graph_hash)},
               {"job", manifest.job},
               {"extra", manifest.extra}};
  if (manifest.score && std::isfinite(*manifest.score)) json["score"] = *manifest.score;
  try {
    return json.dump();
  } catch (const Json::exception& error) {
    throw checkpoint_error(std::string("the manifest cannot be written: ") + error.what());
  }
}

Manifest parse_manifest(const std::string& text) {
  try {
    const Json json = parse_json(text);
    if (const auto format = json.at("format").get<std::int64_t>(); format > format_version) {
      throw checkpoint_error(
          fmt::format("was written by purine {} in format {}; this is purine {}, which reads up to {}",
                      json.value("purine", "?"), format, build_id(), format_version),
          "use that version, or a newer one");
    }
    Manifest manifest;
    manifest.iteration = json.at("iteration").get<std::int64_t>();
    manifest.epoch = json.at("epoch").get<std::int64_t>();
    manifest.position = json.at("position").get<std::int64_t>();
    manifest.seed = json.at("seed").get<std::uint64_t>();
    const std::string graph = json.at("graph").get<std::string>();
    const auto [end, error] =
        std::from_chars(graph.data(), graph.data() + graph.size(), manifest.graph_hash, 16);
    if (error != std::errc() || end != graph.data() + graph.size()) {
      throw checkpoint_error("the manifest's graph hash is no number: " + graph);
    }
    manifest.job = json.at("job").get<std::string>();
    manifest.extra = json.at("extra").get<std::map<std::string, std::string>>();
    if (json.contains("score")) manifest.score = json.at("score").get<double>();
    manifest.purine_version = json.at("purine").get<std::string>();
    return manifest;
  } catch (const Json::exception& error) {
    throw checkpoint_error("the manifest " + json_problem(text, error));
  }
}

/// The checksum of the content, whatever the order of the tensors.
std::string checksum_text(std::string_view manifest, std::span<const HostTensor> tensors) {
  std::vector<const HostTensor*> sorted;
  for (const HostTensor& tensor : tensors) sorted.push_back(&tensor);
  std::ranges::sort(sorted, {}, [](const HostTensor* tensor) { return std::string_view(tensor->name); });
  Crc32c checksum;
  // Each text goes with its length, so that none can pass for the end of another.
  const auto add_text = [&](std::string_view text) {
    checksum.update(bytes_of(fmt::format("{}:", text.size())));
    checksum.update(bytes_of(text));
  };
  add_text(manifest);
  for (const HostTensor* tensor : sorted) {
    add_text(tensor->name);
    add_text(tensor->info.text());
    checksum.update(tensor->data);
  }
  return fmt::format("crc32c:{:08x}", checksum.value());
}

const std::string& required(const Metadata& metadata, std::string_view key) {
  const auto found = metadata.find(std::string(key));
  if (found != metadata.end()) return found->second;
  throw checkpoint_error(fmt::format("has no {}, so it is not a checkpoint", key),
                         "a plain safetensors file gives weights, but a run cannot go on from it");
}

void remove_file(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) throw system_error(path, "remove", error.value());
}

/// The checkpoint with the largest score; a file that cannot be read has none.
std::optional<std::int64_t> best_iteration(std::span<const CheckpointFile> files) {
  std::optional<std::int64_t> best;
  double best_score = 0;
  for (const CheckpointFile& file : files) {
    try {
      const Manifest manifest = load_manifest(file.path);
      if (!manifest.score || (best && *manifest.score < best_score)) continue;
      best = file.iteration;
      best_score = *manifest.score;
    } catch (const Error&) {
      continue;  // damaged: whoever loads it is told
    }
  }
  return best;
}

void remove_old(const std::filesystem::path& folder, std::int64_t iteration, const Retention& retention) {
  if (retention.last == 0) return;
  std::vector<CheckpointFile> files = list_checkpoints(folder);
  std::erase_if(files, [&](const CheckpointFile& file) { return file.iteration > iteration; });
  const auto last = static_cast<std::size_t>(retention.last);
  if (files.size() <= last) return;
  const std::optional<std::int64_t> best = retention.best ? best_iteration(files) : std::nullopt;
  for (const CheckpointFile& file : std::span(files).first(files.size() - last)) {
    if (file.iteration != best) remove_file(file.path);
  }
}

}  // namespace

std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                                      const Retention& retention) {
  const std::int64_t iteration = checkpoint.manifest.iteration;
  if (iteration < 0)
    throw checkpoint_error(fmt::format("iteration {} is negative", iteration)).at(folder.string());
  if (retention.last < 0) {
    throw checkpoint_error(fmt::format("{} checkpoints cannot be kept", retention.last), "0 keeps all")
        .at(folder.string());
  }
  make_folder(folder);
  remove_leftovers(folder);
  const std::filesystem::path path = folder / file_name(iteration);
  with_path(path, [&] {
    const std::string manifest = manifest_text(checkpoint.manifest);
    save_safetensors(path, checkpoint.tensors,
                     {{std::string(manifest_key), manifest},
                      {std::string(checksum_key), checksum_text(manifest, checkpoint.tensors)}});
  });
  remove_old(folder, iteration, retention);
  return path;
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  return with_path(path, [&] {
    Safetensors content = load_safetensors(path);
    const std::string& text = required(content.metadata, manifest_key);
    const std::string& expected = required(content.metadata, checksum_key);
    // The format comes first: a newer one may have another checksum.
    Manifest manifest = parse_manifest(text);
    if (const std::string got = checksum_text(text, content.tensors); got != expected) {
      throw checkpoint_error(
          fmt::format("is damaged: its content gives {}, and it was written with {}", got, expected));
    }
    return Checkpoint{std::move(manifest), std::move(content.tensors)};
  });
}

Manifest load_manifest(const std::filesystem::path& path) {
  return with_path(
      path, [&] { return parse_manifest(required(load_safetensors_header(path).metadata, manifest_key)); });
}

std::vector<CheckpointFile> list_checkpoints(const std::filesystem::path& folder) {
  std::vector<CheckpointFile> files;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return files;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::filesystem::path& path = entries->path();
    if (const auto iteration = iteration_of(path.filename().string())) files.push_back({path, *iteration});
  }
  if (error) throw system_error(folder, "list the folder", error.value());
  std::ranges::sort(files, {}, &CheckpointFile::iteration);
  return files;
}

std::optional<CheckpointFile> latest_checkpoint(const std::filesystem::path& folder) {
  std::vector<CheckpointFile> files = list_checkpoints(folder);
  if (files.empty()) return std::nullopt;
  return std::move(files.back());
}

LatestCheckpoint load_latest_checkpoint(const std::filesystem::path& folder) {
  const std::vector<CheckpointFile> files = list_checkpoints(folder);
  if (files.empty()) throw checkpoint_error("there is no checkpoint in this folder").at(folder.string());
  try {
    return {files.back().path, load_checkpoint(files.back().path)};
  } catch (const Error& newest) {
    std::string hint = newest.hint().empty() ? "" : newest.hint() + "; ";
    for (std::size_t i = files.size() - 1; i > 0; --i) {
      const CheckpointFile& older = files[i - 1];
      try {
        load_checkpoint(older.path);
      } catch (const Error& error) {
        hint += fmt::format("{} cannot be used either ({}); ", older.path.string(), error.message());
        continue;
      }
      hint += fmt::format("{} is whole: move the damaged file away to go on from iteration {}",
                          older.path.string(), older.iteration);
      throw Error(newest.component(), newest.message(), hint).at(newest.path());
    }
    throw Error(newest.component(), newest.message(), hint + "no older checkpoint of this folder is whole")
        .at(newest.path());
  }
}

std::size_t discard_checkpoints_after(const std::filesystem::path& folder, std::int64_t iteration) {
  std::size_t removed = 0;
  for (const CheckpointFile& file : list_checkpoints(folder)) {
    if (file.iteration <= iteration) continue;
    remove_file(file.path);
    ++removed;
  }
  if (removed > 0) sync_folder(folder);
  return removed;
}

}  // namespace purine::io
