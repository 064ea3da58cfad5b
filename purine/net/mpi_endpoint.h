// The endpoint of a process that was started with others by mpirun or srun.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "purine/runtime/endpoint.h"

namespace purine::net {

class Messenger;

struct ConnectionOptions {
  /// A rank of which nothing was heard for so long is lost, and the run fails. A slow rank is heard.
  std::chrono::milliseconds stall_limit{30'000};
  /// Called by a thread in `all_gather` that has waited for words of a rank for `notice_after`, and again
  /// after twice that time, and so on.
  std::function<void(int rank, double seconds)> waits = {};
  std::chrono::milliseconds notice_after{10'000};
  /// All ranks must have come within this time.
  std::chrono::milliseconds start_limit{120'000};
  /// A larger message is sent in chunks of this size, at least 1 and at most 2^30 bytes, until the links are
  /// measured: from then on, of what goes in 2.5 ms, 64 KiB at least and 1 MiB at most.
  std::size_t chunk_bytes = std::size_t{256} << 10;
  /// Chunks are sent while fewer bytes than this are on their way to the same rank, and fewer than go to it
  /// in 10 ms: what an urgent message has to wait for.
  std::size_t bytes_in_flight = std::size_t{4} << 20;
};

/// Connects this process with the others that its launcher started, by MPI; all of them call it, and it waits
/// for them. Throws Error where this build has no MPI, for options out of range, and when the start limit has
/// passed.
///
/// The endpoint ends in agreement with the other ranks: its destructor waits until all of them are done, as
/// long as they live, and then finalises MPI, which cannot be initialised again in this process. A rank that
/// is done while another still expects messages of it fails the run of that one. After a failure the
/// destructor waits no more than about two seconds for others to hear of it, and leaves MPI as it is: the
/// process should then end with a status that isn't 0, upon which the launcher ends those that are left. No
/// function here ends the process.
std::unique_ptr<Endpoint> connect_mpi(const ConnectionOptions& options = {});

/// The same over any messenger; the function makes it, on the thread that uses it.
std::unique_ptr<Endpoint> connect(const std::function<std::unique_ptr<Messenger>()>& make_messenger,
                                  const ConnectionOptions& options);

}  // namespace purine::net
