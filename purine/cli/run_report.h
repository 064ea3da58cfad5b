// Reports as files.
#pragma once

#include <filesystem>
#include <span>

#include "purine/trace/html_report.h"

namespace purine::cli {

/// What a run folder holds for its report: its name, the job and the metrics.
trace::ReportContext context_of(const std::filesystem::path& run_folder);

/// Writes the report of the traces in these files, or in a run folder (see trace::read_traces), with what a
/// simulation says of the job and of others.
void write_report(std::span<const std::filesystem::path> traces, const trace::ReportContext& context,
                  const std::filesystem::path& output);

/// Writes `report.html` into a run folder, and returns where it is.
std::filesystem::path write_run_report(const std::filesystem::path& run_folder);

}  // namespace purine::cli
