#include "purine/train/compare_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "purine/session/agreement.h"
#include "purine/train/job_keys.h"

namespace purine::train {
namespace {

constexpr std::array<std::string_view, 4> own_keys = {"data.folder", "train.workers", "train.run_folder",
                                                      "parallel.stall_limit"};

bool is_own(const std::string& key) {
  return std::find(own_keys.begin(), own_keys.end(), key) != own_keys.end();
}

}  // namespace

void compare_jobs(Endpoint& endpoint, const Job& job) {
  std::string text;
  for (const JobKey& key : job_keys()) {
    if (!is_own(key.path())) text += key.path() + " = " + job_value_text(key.member.get(job)) + "\n";
  }
  const std::vector<std::string> all = endpoint.all_gather(text);
  const auto other = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each != all[0]; });
  if (other == all.end()) return;
  const auto line_at = [](const std::string& lines, std::size_t position) {
    const std::size_t begin = position == 0 ? 0 : lines.rfind('\n', position - 1) + 1;
    return lines.substr(begin, lines.find('\n', position) - begin);
  };
  const auto differ = std::mismatch(all[0].begin(), all[0].end(), other->begin(), other->end());
  const auto position = static_cast<std::size_t>(differ.first - all[0].begin());
  throw AgreedError(Error("job",
                          fmt::format("rank 0 has {}, rank {} has {}", line_at(all[0], position),
                                      other - all.begin(), line_at(*other, position)),
                          "start all processes with the same job"));
}

}  // namespace purine::train
