// The traces of a run, from their files.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "purine/trace/trace.h"

namespace purine::trace {

/// The file of another rank beside rank 0's: `trace.rank1.json` for `trace.json`.
std::filesystem::path rank_file(const std::filesystem::path& first, int rank);

/// Reads the traces of one run, and sorts them by rank. A single file of rank 0 brings in those of the other
/// ranks that lie beside it; a folder is that of a run, and stands for its newest trace. Two files of one
/// rank, and whatever can't be read, throw Error naming the file.
std::vector<Trace> read_traces(std::span<const std::filesystem::path> paths);

}  // namespace purine::trace
