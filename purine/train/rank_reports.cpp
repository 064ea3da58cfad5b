#include "purine/train/rank_reports.h"

#include <fmt/format.h>

#include "purine/session/gather_values.h"

namespace purine::train {

std::vector<RankReport> gather_rank_reports(Endpoint& endpoint, const trace::TransferUsage& transfers,
                                            std::int64_t skipped_images) {
  struct Said {
    trace::TransferUsage transfers;
    std::int64_t skipped_images;
  };
  std::vector<RankReport> reports;
  for (const Said& said : gather_values(&endpoint, Said{transfers, skipped_images})) {
    reports.push_back({endpoint.host(static_cast<int>(reports.size())), said.transfers, said.skipped_images});
  }
  return reports;
}

std::chrono::milliseconds notice_after(double stall_limit) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * stall_limit / 3));
}

std::string wait_text(int rank, const std::string& host, double seconds) {
  return fmt::format("waiting for {:.0f} s for rank {} at {}, which lives", seconds, rank, host);
}

}  // namespace purine::train
