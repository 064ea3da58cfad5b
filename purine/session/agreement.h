// What the ranks of a run agree on before it begins.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "purine/graph/graph.h"
#include "purine/runtime/endpoint.h"

namespace purine {

/// An Error that all ranks throw alike, so that one of them needs to tell a user of it.
class AgreedError final : public Error {
 public:
  explicit AgreedError(const Error& error, std::exception_ptr cause = nullptr)
      : Error(error), cause_(std::move(cause)) {}
  /// The error itself, for those who want to know of what type it is; null if of none.
  const std::exception_ptr& cause() const { return cause_; }

 private:
  std::exception_ptr cause_;
};

/// Calls a function that may throw at some ranks and not at others. If it has at any, all throw: an
/// AgreedError if they all say the same; otherwise what the first of those ranks has thrown, which the others
/// throw as a RemoteError, so that one of them tells a user of one cause. A collective call; the function
/// makes none. Without an endpoint it is called, no more.
void at_all_ranks(Endpoint* endpoint, const std::function<void()>& function);

/// Compares version, seed and graph over all ranks, by hashes. Where they differ, all ranks throw the same
/// AgreedError, which names the first vertex that differs, what it is at rank 0 and at the first rank where
/// it is something else. A collective call.
void compare_graphs(Endpoint& endpoint, Graph& graph, std::uint64_t seed);

/// Throws the same AgreedError at all ranks unless they all say the same: "rank 0 … , rank 2 …". A collective
/// call.
void compare_words(Endpoint& endpoint, const std::string& words, std::string_view hint);

}  // namespace purine
