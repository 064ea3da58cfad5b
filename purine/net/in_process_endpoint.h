// Ranks that are threads of one process, for tests: with a network of set speed, and its faults.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "purine/runtime/endpoint.h"

namespace purine::net {

struct InProcessOptions {
  /// What each rank's line out carries; 0: messages take no time.
  double bytes_per_second = 0;
  /// From the end of a message's sending to its arrival.
  std::chrono::nanoseconds latency{0};
  /// On a line of set speed, messages are sent in chunks of this size.
  std::size_t chunk_bytes = std::size_t{256} << 10U;
  /// Messages arrive late by random times, so in random order.
  std::optional<std::uint64_t> shuffle_seed = std::nullopt;
  /// A rank that is silent for longer ends the run.
  std::chrono::nanoseconds stall_limit = std::chrono::seconds(30);
};

/// The endpoints of all ranks of a run, and the one thread that moves bytes between them.
class InProcessHub {
 public:
  explicit InProcessHub(int ranks, InProcessOptions options = {});
  InProcessHub(const InProcessHub&) = delete;
  InProcessHub& operator=(const InProcessHub&) = delete;
  /// Nothing may be under way.
  ~InProcessHub();

  /// Lives as long as the hub.
  Endpoint& endpoint(int rank);

  /// The rank falls silent for good. What it has under way, or begins, fails at once, so that its threads
  /// come to an end.
  void kill(int rank);
  /// The rank neither sends nor receives anything until it is resumed.
  void pause(int rank);
  void resume(int rank);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace purine::net
