#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <system_error>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/cli/output_path.h"
#include "purine/cli/run_report.h"
#include "purine/core/error.h"
#include "purine/io/file.h"
#include "purine/io/metrics.h"

namespace purine::cli {

int report(const ReportRequest& request) {
  const std::vector<std::filesystem::path> traces(request.traces.begin(), request.traces.end());
  const std::filesystem::path& first = traces.front();
  std::error_code error;
  const bool is_run = std::filesystem::is_directory(first, error);
  std::filesystem::path output = first;
  if (request.output) {
    output = *request.output;
  } else if (is_run) {
    output /= "report.html";
  } else {
    output.replace_extension(".html");
  }
  std::vector<std::filesystem::path> inputs = traces;
  if (request.job) inputs.emplace_back(*request.job);
  if (request.metrics) inputs.emplace_back(*request.metrics);
  check_outputs("purine report", std::array{Output{"--output", output}}, inputs);
  trace::ReportContext context;
  if (is_run) {
    context = context_of(first);
  } else {
    context.title = first.stem().string();
  }
  if (request.job) context.job = io::read_file(*request.job);
  if (request.metrics) {
    context.metrics = io::read_file(*request.metrics);
    try {
      io::check_metrics(context.metrics);
    } catch (const Error& mistake) {
      throw mistake.at(*request.metrics);
    }
  }
  write_report(traces, context, output);
  fmt::print("{}\n", output.string());
  return success;
}

}  // namespace purine::cli
