// Collective operations as compositions of copies, sums, slices and concatenations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/ops/narrow.h"

namespace purine::parallel {

/// Makes the sum of `parts`, which lie at different locations and have one shape and dtype, and gives it at
/// each of these locations, in their order. All results have the same bits, whatever runs first. `number`
/// counts the all-reduces of a graph: compositions with a location of special duty deal that out by it.
///
/// Any function that adds vertices so is an all-reduce: see examples/all_reduce.cpp.
using AllReduce = std::function<std::vector<Tensor>(std::span<const Tensor> parts, std::int64_t number)>;

/// All parts go to one location, which adds them in their order and sends the sum back. 2 (n - 1) copies, all
/// of them at that location: good for many small tensors, over which it is dealt out.
std::vector<Tensor> central_all_reduce(std::span<const Tensor> parts, std::int64_t number);
/// Each location adds one n-th of the elements (reduce-scatter), and sends it to all others (all-gather).
/// Every location sends and receives 2 (n - 1) / n of a tensor, the least there is, in 2 (n - 1) messages; n
/// * n of them in all.
std::vector<Tensor> sharded_all_reduce(std::span<const Tensor> parts, std::int64_t number);
/// The same amount in a ring: each n-th of the elements goes around once to be added up, and once to be known
/// (Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009). Every
/// location talks to its neighbours alone.
std::vector<Tensor> ring_all_reduce(std::span<const Tensor> parts, std::int64_t number);
/// Pairs, then pairs of pairs add up, and the sum goes back the same way: 2 log2(n) messages one after the
/// other, 2 (n - 1) in all. For small tensors at many locations.
std::vector<Tensor> tree_all_reduce(std::span<const Tensor> parts, std::int64_t number);

/// What a message costs.
struct Link {
  double latency = 50e-6;         ///< seconds until a message is there
  double overhead = 5e-6;         ///< seconds of a location's own for each message
  double bytes_per_second = 1e9;  ///< of a location, in each direction
};

enum class Composition : std::uint8_t { central, sharded, tree, ring };
/// The one of the first three that is estimated to take the shortest for a tensor of this size at n
/// locations:
///   central  2 (latency + (n - 1) (overhead + bytes / rate))
///   sharded  2 (latency + (n - 1) (overhead + bytes / n / rate)), not above 64 locations, where n * n copies
///            would be too many
///   tree     2 ceil(log2 n) (latency + overhead + bytes / rate)
Composition cheapest_all_reduce(double bytes, int locations, const Link& link);
/// The cheapest of them, tensor by tensor.
AllReduce all_reduce_by_cost(const Link& link = {});

/// In which format floating numbers are on their way; none: as they are.
using Wire = std::optional<ops::NarrowFormat>;
/// A composition whose messages have two bytes a number. Sums are made of f32 or f64 as before, but of parts
/// that were narrow on their way, and a result, too, is what is left of the sum after its way: the same bits
/// everywhere. With rounding errors of u (narrow.h) and parts x_1 … x_n, the sum is off by at most u (|x_1| +
/// … + |x_n|) and then by u of itself; in a ring, where sums of parts travel on, by n u (|x_1| + …) and u.
AllReduce narrow_all_reduce(Composition composition, ops::NarrowFormat format);
/// The cheapest, by its narrow messages.
AllReduce narrow_all_reduce_by_cost(const Link& link, ops::NarrowFormat format);
/// Tensors above `bytes` are cut into chunks of at most that, each of which is reduced by itself as soon as
/// it is there.
AllReduce in_chunks(AllReduce all_reduce, std::size_t bytes);

/// The sum of the parts, in their order, at a location.
Tensor reduce(std::span<const Tensor> parts, Location at, Wire wire = {});
/// `x` at each location, sent by a binomial tree: each that has it sends it on.
std::vector<Tensor> broadcast(Tensor x, std::span<const Location> locations);

}  // namespace purine::parallel
