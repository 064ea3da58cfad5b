// Ranks as threads.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "purine/net/in_process_endpoint.h"

namespace purine::test {

/// Does something at each rank of a hub, on a thread of its own. The texts of what was thrown, by rank; empty
/// where nothing was.
inline std::vector<std::string> at_ranks(net::InProcessHub& hub, int ranks,
                                         const std::function<void(Endpoint&)>& function) {
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        function(hub.endpoint(rank));
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace purine::test
