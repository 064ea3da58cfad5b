#include "purine/cli/run_report.h"

#include <array>
#include <string>
#include <system_error>
#include <vector>

#include "purine/io/atomic_file.h"
#include "purine/io/file.h"
#include "purine/trace/read_traces.h"
#include "purine/train/run_folder.h"
#include "purine/train/simulated_changes.h"

namespace purine::cli {
namespace {

namespace fs = std::filesystem;

std::string text_if_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) ? io::read_file(path) : "";
}

}  // namespace

trace::ReportContext context_of(const fs::path& run_folder) {
  const train::RunPaths run{run_folder};
  return {fs::canonical(run_folder).filename().string(), text_if_there(run.job()),
          text_if_there(run.metrics())};
}

void write_report(std::span<const fs::path> traces, const trace::ReportContext& context,
                  const fs::path& output) {
  const std::vector<trace::Trace> ranks = trace::read_traces(traces);
  trace::ReportContext all = context;
  all.simulated = train::simulate_changes(ranks);
  all.network = train::network_of(ranks);
  io::write_file(output, trace::html_report(ranks, all));
}

fs::path write_run_report(const fs::path& run_folder) {
  const fs::path output = run_folder / "report.html";
  write_report(std::array{run_folder}, context_of(run_folder), output);
  return output;
}

}  // namespace purine::cli
