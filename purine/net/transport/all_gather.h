// Words from every rank to every rank, by an endpoint's messages.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "purine/runtime/endpoint.h"

namespace purine::net {

/// Told of a rank that is waited for.
struct WaitNotice {
  std::function<void(int rank, double seconds)> waits = {};
  std::chrono::milliseconds after{10'000};  ///< and then after twice that time, and so on
};

/// What all ranks say, by rank, in as many rounds of two messages as the number of ranks has binary digits:
/// in round k each rank passes what it has to the rank 2^k before it, so that all have twice as much (Bruck
/// et al., "Efficient algorithms for all-to-all communications in multiport message-passing systems", 1997).
/// The ranks make these calls in the same order, which `call` counts; nothing else uses the channel. Blocks,
/// and throws what the messages complete with.
std::vector<std::string> all_gather(Endpoint& endpoint, std::string_view words, std::uint32_t channel,
                                    std::int64_t call, const WaitNotice& notice = {});

}  // namespace purine::net
