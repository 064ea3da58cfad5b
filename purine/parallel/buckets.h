// Small tensors that are all-reduced together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/parallel/plan.h"
#include "purine/parallel/reshard.h"

namespace purine::parallel {

/// Which tensors of a graph share a bucket: those that are partial along one axis, whole along all others,
/// needed whole, and at most a quarter of a bucket. Buckets hold what is produced one after the other, so
/// that one is ready soon after its first tensor. The last one has at most an eighth, or one tensor: of
/// gradients it has those of the first layers, for which the next iteration waits.
class Buckets {
 public:
  /// Of at most `bytes`; 0: there are none.
  Buckets(Graph& graph, const Plan& plan, std::size_t bytes);
  /// The numbers of the tensors in a tensor's bucket, in the order in which they lie in it; none where it is
  /// in none. Tensors of whole units of alignment come first, so that all of these are made where they lie.
  std::span<const std::uint32_t> with(std::uint32_t tensor) const;

 private:
  std::vector<std::vector<std::uint32_t>> buckets_;
  std::vector<std::uint32_t> bucket_of_;  // by tensor
};

/// Adds vertices that bring several tensors, of one dtype and with pieces at the same locations, from a spec
/// to the one that has them whole everywhere, as one tensor: the pieces laid out one after the other,
/// reduced, and taken apart again. Each begins at a multiple of 64 bytes, for which up to 63 bytes are put
/// between them; so freezing makes them where they lie (memory_plan.h), and nothing is packed or unpacked.
std::vector<Pieces> convert_bucket(Graph& graph, Resharder& resharder, std::span<const Pieces> tensors,
                                   const Spec& from, std::string_view path, bool are_gradients);

}  // namespace purine::parallel
