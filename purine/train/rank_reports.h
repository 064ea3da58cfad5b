// What each rank did in a run.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "purine/data/source.h"
#include "purine/runtime/endpoint.h"
#include "purine/session/runtime.h"
#include "purine/train/job.h"
#include "purine/train/reports.h"

namespace purine::train {

/// Those of all ranks, by rank, from what each says of itself. A collective call.
std::vector<RankReport> gather_rank_reports(Endpoint& endpoint, const trace::TransferUsage& transfers);
/// The images of a job that any rank has left out, each once, whichever ranks and hosts met it; sorted by
/// path. At the others than rank 0 just their own. A collective call.
std::vector<data::SkippedImages::Entry> gather_skipped(Runtime& runtime, const Job& job,
                                                       const data::SkippedImages& own);
/// For how long a rank waits before it says so: a third of the time after which one that is silent is lost.
std::chrono::milliseconds notice_after(double stall_limit);
/// `waiting for 12 s for rank 1 at node2, which lives`.
std::string wait_text(int rank, const std::string& host, double seconds);

}  // namespace purine::train
