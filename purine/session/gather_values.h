// Numbers of all ranks.
#pragma once

#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "purine/core/error.h"
#include "purine/runtime/endpoint.h"

namespace purine {

/// The same struct of numbers as each rank has it, by rank; ranks run on machines that represent it alike.
/// Without an endpoint just one's own. A collective call.
template <typename Value>
std::vector<Value> gather_values(Endpoint* endpoint, const Value& own) {
  static_assert(std::is_trivially_copyable_v<Value>);
  if (endpoint == nullptr) return {own};
  std::vector<Value> all;
  for (const auto& words :
       endpoint->all_gather(std::string_view(reinterpret_cast<const char*>(&own), sizeof(Value)))) {
    PURINE_CHECK(words.size() == sizeof(Value));
    std::memcpy(static_cast<void*>(&all.emplace_back()), words.data(), sizeof(Value));
  }
  return all;
}

}  // namespace purine
