#include <fmt/format.h>

#include "purine/cli/commands.h"
#include "purine/cli/progress_line.h"
#include "purine/data/check.h"

namespace purine::cli {
namespace {

data::CheckReport check(const std::string& folder) {
  ProgressLine line;
  data::CheckOptions options;
  options.progress = [&](std::int64_t done, std::int64_t total) {
    line.show(fmt::format("{} of {} images", done, total));
  };
  return data::check(folder, options);
}

}  // namespace

int data_check(const DataCheckRequest& request) {
  const data::CheckReport report = check(request.folder);
  fmt::print("{}{}", request.json ? report.json() : report.text(), request.json ? "\n" : "");
  return report.ok() ? success : failure;
}

}  // namespace purine::cli
