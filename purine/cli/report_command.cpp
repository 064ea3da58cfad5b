#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/cli/output_path.h"
#include "purine/cli/run_report.h"
#include "purine/io/file.h"

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
  check_output("purine report", "--output", output);
  trace::ReportContext context;
  if (is_run) {
    context = context_of(first);
  } else {
    context.title = first.stem().string();
  }
  if (request.job) context.job = io::read_file(*request.job);
  if (request.metrics) context.metrics = io::read_file(*request.metrics);
  write_report(traces, context, output);
  fmt::print("{}\n", output.string());
  return success;
}

}  // namespace purine::cli
