#include "purine/train/rank_reports.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "purine/core/json_helpers.h"
#include "purine/session/gather_texts.h"
#include "purine/session/gather_values.h"

namespace purine::train {

std::vector<RankReport> gather_rank_reports(Endpoint& endpoint, const trace::TransferUsage& transfers) {
  std::vector<RankReport> reports;
  for (const trace::TransferUsage& said : gather_values(&endpoint, transfers)) {
    reports.push_back({endpoint.host(static_cast<int>(reports.size())), said});
  }
  return reports;
}

std::vector<data::SkippedImages::Entry> gather_skipped(Runtime& runtime, const Job& job,
                                                       const data::SkippedImages& own) {
  using Entry = data::SkippedImages::Entry;
  using Json = nlohmann::json;
  std::vector<Entry> entries = own.entries();
  if (runtime.ranks() == 1 || job.data.on_bad_image != "skip") return entries;
  // The set may lie elsewhere at each host.
  const auto within_set = [](const std::string& path, const std::string& folder) {
    return path.starts_with(folder) ? path.substr(folder.size()) : path;
  };
  Json said = Json::array();
  for (const Entry& entry : entries) {
    said.push_back({within_set(entry.path, job.data.folder), entry.path, entry.reason});
  }
  std::map<std::string, Entry> all;
  for (const std::string& text :
       gather_texts(runtime, said.dump(-1, ' ', false, Json::error_handler_t::replace))) {
    for (const Json& image : parse_json(text)) all.try_emplace(image[0], Entry{image[1], image[2]});
  }
  if (runtime.rank() != 0) return entries;
  entries.clear();
  for (const auto& [image, entry] : all) entries.push_back(entry);
  return entries;
}

std::chrono::milliseconds notice_after(double stall_limit) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * stall_limit / 3));
}

std::string wait_text(int rank, const std::string& host, double seconds) {
  return fmt::format("waiting for {:.0f} s for rank {} at {}, which lives", seconds, rank, host);
}

}  // namespace purine::train
