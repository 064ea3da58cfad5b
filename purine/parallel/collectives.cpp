#include "purine/parallel/collectives.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "purine/core/error.h"
#include "purine/ops/concat.h"
#include "purine/ops/copy.h"
#include "purine/ops/reshape.h"
#include "purine/ops/sum_n.h"

namespace purine::parallel {
namespace {

/// Elements [begin, end) of a tensor of rank 1, at its location.
Tensor slice(Tensor x, std::int64_t begin, std::int64_t end) {
  if (begin == 0 && end == x.shape()[0]) return x;
  const auto place = x.graph().at(x.location());
  return ops::slice(x, 0, begin, end);
}

Tensor concat(const std::vector<Tensor>& tensors) {
  if (tensors.size() == 1) return tensors.front();
  const auto place = tensors.front().graph().at(tensors.front().location());
  return ops::concat(tensors, 0);
}

Tensor sum(std::span<const Tensor> tensors) {
  if (tensors.size() == 1) return tensors.front();
  const auto place = tensors.front().graph().at(tensors.front().location());
  return ops::sum_n(tensors, "sum");
}

Tensor reshape(Tensor x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const auto place = x.graph().at(x.location());
  return ops::reshape(x, {shape.begin(), shape.end()});
}

/// Elements of the n-th part of so many, in whole lines of 16 elements where there are enough of them: so
/// parts begin at aligned addresses, and need not be copied out of the tensor or into it. The first parts
/// have one line more where it doesn't come out even.
std::pair<std::int64_t, std::int64_t> part(std::int64_t elements, std::size_t index, std::size_t count) {
  const auto i = static_cast<std::int64_t>(index);
  const auto n = static_cast<std::int64_t>(count);
  const std::int64_t line = elements >= 64 * n ? 16 : 1;
  const std::int64_t lines = (elements + line - 1) / line;
  const auto begin = [&](std::int64_t k) {
    return std::min(elements, (lines / n * k + std::min(lines % n, k)) * line);
  };
  return {begin(i), begin(i + 1)};
}

std::vector<Tensor> flatten(std::span<const Tensor> parts) {
  std::vector<Tensor> flat;
  for (const Tensor tensor : parts) flat.push_back(reshape(tensor, {tensor.shape().elements()}));
  return flat;
}

std::vector<Tensor> unflatten(std::vector<Tensor> flat, const Shape& shape) {
  for (Tensor& tensor : flat) tensor = reshape(tensor, shape);
  return flat;
}

/// A tensor as it goes on its way, at its location, and what it is after it, at that location.
Tensor packed(Tensor x, Wire wire) {
  if (!wire || !is_floating(x.dtype())) return x;
  const auto place = x.graph().at(x.location());
  return ops::narrow(reshape(x, {x.shape().elements()}), *wire);
}

Tensor unpacked(Tensor sent, const TensorInfo& info, Wire wire) {
  if (!wire || !is_floating(info.dtype)) return sent;
  const auto place = sent.graph().at(sent.location());
  return reshape(ops::widen(sent, *wire, info.dtype), info.shape);
}

Tensor send(Tensor x, Location to, Wire wire) {
  if (x.location() == to) return x;
  return unpacked(ops::copy(packed(x, wire), to), x.info(), wire);
}

/// True where n locations cannot each have some of the elements.
bool too_small(std::span<const Tensor> parts) {
  return parts.front().shape().elements() < static_cast<std::int64_t>(parts.size());
}

std::vector<Tensor> central(std::span<const Tensor> parts, std::int64_t number, Wire wire) {
  const Location root = parts[static_cast<std::size_t>(number) % parts.size()].location();
  const Tensor sum = packed(reduce(parts, root, wire), wire);
  std::vector<Tensor> results;
  for (const Tensor tensor : parts) {
    results.push_back(unpacked(ops::copy(sum, tensor.location()), tensor.info(), wire));
  }
  return results;
}

std::vector<Tensor> sharded(std::span<const Tensor> parts, std::int64_t number, Wire wire) {
  if (too_small(parts)) return central(parts, number, wire);
  const std::size_t count = parts.size();
  const std::vector<Tensor> flat = flatten(parts);
  const std::int64_t elements = flat.front().shape()[0];
  std::vector<TensorInfo> infos;  // of the shards
  std::vector<Tensor> shards;
  for (std::size_t owner = 0; owner < count; ++owner) {
    const auto [begin, end] = part(elements, owner, count);
    std::vector<Tensor> slices;
    for (const Tensor tensor : flat) slices.push_back(slice(tensor, begin, end));
    const Tensor shard = reduce(slices, parts[owner].location(), wire);
    infos.push_back(shard.info());
    shards.push_back(packed(shard, wire));
  }
  std::vector<Tensor> results;
  for (const Tensor tensor : parts) {
    std::vector<Tensor> gathered;
    for (std::size_t owner = 0; owner < count; ++owner) {
      gathered.push_back(unpacked(ops::copy(shards[owner], tensor.location()), infos[owner], wire));
    }
    results.push_back(concat(gathered));
  }
  return unflatten(std::move(results), parts.front().shape());
}

std::vector<Tensor> ring(std::span<const Tensor> parts, std::int64_t number, Wire wire) {
  if (too_small(parts)) return central(parts, number, wire);
  const std::size_t count = parts.size();
  const std::vector<Tensor> flat = flatten(parts);
  const std::int64_t elements = flat.front().shape()[0];
  std::vector<std::vector<Tensor>> chunks(count, std::vector<Tensor>(count));  // by location, by chunk
  for (std::size_t chunk = 0; chunk < count; ++chunk) {
    const auto [begin, end] = part(elements, chunk, count);
    // Around once from location `chunk` on, which adds up; the last one has the sum, which goes around again.
    Tensor running = slice(flat[chunk], begin, end);
    const TensorInfo info = running.info();
    for (std::size_t step = 1; step < count; ++step) {
      const std::size_t at = (chunk + step) % count;
      const std::array<Tensor, 2> pair = {send(running, parts[at].location(), wire),
                                          slice(flat[at], begin, end)};
      running = sum(pair);
    }
    running = packed(running, wire);
    for (std::size_t step = count - 1; step < 2 * count - 1; ++step) {
      const std::size_t at = (chunk + step) % count;
      running = ops::copy(running, parts[at].location());
      chunks[at][chunk] = unpacked(running, info, wire);
    }
  }
  std::vector<Tensor> results;
  for (const std::vector<Tensor>& gathered : chunks) results.push_back(concat(gathered));
  return unflatten(std::move(results), parts.front().shape());
}

std::vector<Tensor> tree(std::span<const Tensor> parts, std::int64_t number, Wire wire) {
  const std::size_t count = parts.size();
  const auto root = static_cast<std::size_t>(number) % count;
  std::vector<Tensor> running;  // from the root on
  for (std::size_t i = 0; i < count; ++i) running.push_back(parts[(root + i) % count]);
  std::size_t top = 1;
  for (std::size_t step = 1; step < count; step *= 2) {
    for (std::size_t i = 0; i + step < count; i += 2 * step) {
      const std::array<Tensor, 2> pair = {running[i], send(running[i + step], running[i].location(), wire)};
      running[i] = sum(pair);
    }
    top = step;
  }
  running.front() = packed(running.front(), wire);
  for (std::size_t step = top; step > 0; step /= 2) {
    for (std::size_t i = 0; i + step < count; i += 2 * step) {
      running[i + step] = ops::copy(running[i], running[i + step].location());
    }
  }
  std::vector<Tensor> results(count);
  for (std::size_t i = 0; i < count; ++i) {
    results[(root + i) % count] = unpacked(running[i], parts.front().info(), wire);
  }
  return results;
}

std::vector<Tensor> all_reduce(Composition composition, std::span<const Tensor> parts, std::int64_t number,
                               Wire wire) {
  switch (composition) {
    case Composition::central:
      return central(parts, number, wire);
    case Composition::sharded:
      return sharded(parts, number, wire);
    case Composition::ring:
      return ring(parts, number, wire);
    case Composition::tree:
      break;
  }
  return tree(parts, number, wire);
}

/// The cheapest, by the bytes that are sent.
AllReduce by_cost(const Link& link, Wire wire) {
  return [link, wire](std::span<const Tensor> parts, std::int64_t number) {
    const TensorInfo& info = parts.front().info();
    const bool is_narrow = wire && is_floating(info.dtype);
    const auto bytes =
        static_cast<double>(is_narrow ? 2 * info.shape.elements() : static_cast<std::int64_t>(info.bytes()));
    return all_reduce(cheapest_all_reduce(bytes, static_cast<int>(parts.size()), link), parts, number, wire);
  };
}

}  // namespace

Tensor reduce(std::span<const Tensor> parts, Location at, Wire wire) {
  PURINE_CHECK(!parts.empty());
  std::vector<Tensor> here;
  for (const Tensor tensor : parts) here.push_back(send(tensor, at, wire));
  return sum(here);
}

std::vector<Tensor> broadcast(Tensor x, std::span<const Location> locations) {
  // The source first; then everyone sends to the one that lies as far ahead as there were in the last round.
  // Who follows the source is reached first, and sends the most on: of many sources, each someone else.
  const std::size_t count = locations.size();
  const auto source = static_cast<std::size_t>(std::find(locations.begin(), locations.end(), x.location()) -
                                               locations.begin());
  const std::size_t first = source < count ? source + 1 : 0;
  std::vector<std::size_t> order;
  std::vector<Tensor> result(count);
  if (source < count) result[source] = x;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (first + i) % count;
    if (at != source) order.push_back(at);
  }
  std::vector<Tensor> reached = {x};
  for (std::size_t next = 0; next < order.size();) {
    const std::size_t senders = reached.size();
    for (std::size_t i = 0; i < senders && next < order.size(); ++i, ++next) {
      result[order[next]] = ops::copy(reached[i], locations[order[next]]);
      reached.push_back(result[order[next]]);
    }
  }
  return result;
}

std::vector<Tensor> central_all_reduce(std::span<const Tensor> parts, std::int64_t number) {
  return central(parts, number, {});
}

std::vector<Tensor> sharded_all_reduce(std::span<const Tensor> parts, std::int64_t number) {
  return sharded(parts, number, {});
}

std::vector<Tensor> ring_all_reduce(std::span<const Tensor> parts, std::int64_t number) {
  return ring(parts, number, {});
}

std::vector<Tensor> tree_all_reduce(std::span<const Tensor> parts, std::int64_t number) {
  return tree(parts, number, {});
}

Composition cheapest_all_reduce(double bytes, int locations, const Link& link) {
  constexpr int most_sharded = 64;
  const double others = locations - 1;
  const double transfer = bytes / link.bytes_per_second;
  const double rounds = std::ceil(std::log2(static_cast<double>(locations)));
  const double central = link.latency + others * (link.overhead + transfer);
  const double sharded = locations > most_sharded
                             ? central + 1
                             : link.latency * 1.5 + others * (link.overhead + transfer / locations);
  const double tree = rounds * (link.latency + link.overhead + transfer);
  if (central <= sharded && central <= tree) return Composition::central;
  return sharded <= tree ? Composition::sharded : Composition::tree;
}

AllReduce all_reduce_by_cost(const Link& link) {
  return by_cost(link, {});
}

AllReduce narrow_all_reduce(Composition composition, ops::NarrowFormat format) {
  return [composition, format](std::span<const Tensor> parts, std::int64_t number) {
    return all_reduce(composition, parts, number, format);
  };
}

AllReduce narrow_all_reduce_by_cost(const Link& link, ops::NarrowFormat format) {
  return by_cost(link, format);
}

AllReduce in_chunks(AllReduce all_reduce, std::size_t bytes) {
  PURINE_CHECK(bytes > 0);
  return [all_reduce = std::move(all_reduce), bytes](std::span<const Tensor> parts, std::int64_t number) {
    const TensorInfo& info = parts.front().info();
    if (info.bytes() <= bytes) return all_reduce(parts, number);
    const std::size_t count = (info.bytes() + bytes - 1) / bytes;
    const std::vector<Tensor> flat = flatten(parts);
    std::vector<std::vector<Tensor>> chunks(parts.size());  // by location
    for (std::size_t chunk = 0; chunk < count; ++chunk) {
      const auto [begin, end] = part(flat.front().shape()[0], chunk, count);
      std::vector<Tensor> slices;
      for (const Tensor tensor : flat) slices.push_back(slice(tensor, begin, end));
      const std::vector<Tensor> sums = all_reduce(slices, number + static_cast<std::int64_t>(chunk));
      for (std::size_t i = 0; i < sums.size(); ++i) chunks[i].push_back(sums[i]);
    }
    std::vector<Tensor> results;
    for (const std::vector<Tensor>& gathered : chunks) results.push_back(concat(gathered));
    return unflatten(std::move(results), info.shape);
  };
}

}  // namespace purine::parallel
