#include "purine/trace/read_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "purine/core/error.h"
#include "purine/trace/chrome_trace.h"

namespace purine::trace {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The trace of a run folder that was written last, of rank 0.
fs::path newest_in(const fs::path& folder) {
  fs::path newest;
  fs::file_time_type time;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("trace") || !name.ends_with(".json") || name.find(".rank") != std::string::npos)
      continue;
    if (!newest.empty() && entry.last_write_time() <= time) continue;
    newest = entry.path();
    time = entry.last_write_time();
  }
  if (newest.empty()) {
    throw Error("trace", "holds no trace", "a run writes one if its job has trace.steps above 0")
        .at(folder.string());
  }
  return newest;
}

}  // namespace

fs::path rank_file(const fs::path& first, int rank) {
  if (rank == 0) return first;
  fs::path other = first;
  return other.replace_filename(
      fmt::format("{}.rank{}{}", first.stem().string(), rank, first.extension().string()));
}

std::vector<Trace> read_traces(std::span<const fs::path> paths) {
  std::vector<fs::path> files(paths.begin(), paths.end());
  std::error_code error;
  for (fs::path& file : files) {
    if (fs::is_directory(file, error)) file = newest_in(file);
  }
  std::vector<Trace> traces;
  const auto add = [&](const fs::path& file) {
    Trace trace = read_chrome_trace(file);
    const auto same = std::ranges::find(traces, trace.rank, &Trace::rank);
    if (same != traces.end()) {
      throw Error("trace", fmt::format("is of rank {}, and so is another file", trace.rank),
                  "name the files of one run, one for each rank")
          .at(file.string());
    }
    traces.push_back(std::move(trace));
  };
  for (const fs::path& file : files) add(file);
  if (traces.size() == 1 && traces.front().rank == 0) {
    for (int rank = 1; is_there(rank_file(files.front(), rank)); ++rank) add(rank_file(files.front(), rank));
  }
  std::ranges::sort(traces, {}, &Trace::rank);
  return traces;
}

}  // namespace purine::trace
