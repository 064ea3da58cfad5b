// What a thread must do before it runs the CPU's kernels.
#pragma once

namespace purine::cpu {

/// Makes the calling thread run libraries' kernels alone, without OpenMP's helper threads: parallelism comes
/// from operators and their parts. Every worker thread calls it once when it starts. (A thread that does not
/// gets the same results; each kernel then sets and restores this.)
void prepare_worker_thread();

}  // namespace purine::cpu
