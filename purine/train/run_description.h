// What a run is, told such that it can be simulated.
#pragma once

#include <cstdint>
#include <span>

#include "purine/data/source.h"
#include "purine/net/start_up.h"
#include "purine/session/runtime.h"
#include "purine/trace/trace.h"
#include "purine/train/parallel_section.h"

namespace purine::train {

/// The job of a run, and a cluster with a host for each rank: as many cores as the rank has workers, at the
/// speed that each has while all of the host work, and a card that carries what was measured of the link to
/// the next rank. `links` are those of all ranks, or empty. Measures for about 0.1 s. A collective call, of
/// whose results all are the same.
trace::RunDescription describe_run(const Runtime& runtime, const ParallelSetup& setup,
                                   const data::ImageSize& image, std::int64_t classes,
                                   std::span<const net::Link> links);

}  // namespace purine::train
