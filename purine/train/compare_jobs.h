// Whether all ranks have the same job.
#pragma once

#include "purine/runtime/endpoint.h"
#include "purine/train/job.h"

namespace purine::train {

/// Throws the same AgreedError at all ranks where their jobs differ in a key that concerns all of them; it
/// names the first one, and its values. Where the data lie and how many workers there are is each rank's own
/// matter, and the run folder is rank 0's. A collective call.
void compare_jobs(Endpoint& endpoint, const Job& job);

}  // namespace purine::train
