// What each rank did in a run.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "purine/runtime/endpoint.h"
#include "purine/train/reports.h"

namespace purine::train {

/// Those of all ranks, by rank, from what each says of itself. A collective call.
std::vector<RankReport> gather_rank_reports(Endpoint& endpoint, const trace::TransferUsage& transfers,
                                            std::int64_t skipped_images);
/// For how long a rank waits before it says so: a third of the time after which one that is silent is lost.
std::chrono::milliseconds notice_after(double stall_limit);
/// `waiting for 12 s for rank 1 at node2, which lives`.
std::string wait_text(int rank, const std::string& host, double seconds);

}  // namespace purine::train
