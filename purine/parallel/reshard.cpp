#include "purine/parallel/reshard.h"

#include <algorithm>
#include <string>
#include <utility>

#include "purine/core/error.h"
#include "purine/ops/concat.h"
#include "purine/ops/copy.h"
#include "purine/ops/unary.h"
#include "purine/parallel/plan.h"

namespace purine::parallel {
namespace {

using Kind = Placement::Kind;

/// Elements of a dimension of a tensor, at its location; the tensor itself if they are all.
Tensor slice(Tensor x, int dimension, Range range) {
  if (range.begin == 0 && range.end == x.shape()[dimension]) return x;
  const auto place = x.graph().at(x.location());
  return ops::slice(x, dimension, range.begin, range.end);
}

Tensor concat(const std::vector<Tensor>& tensors, int dimension, Location at) {
  if (tensors.size() == 1) return tensors.front();
  const auto place = tensors.front().graph().at(at);
  return ops::concat(tensors, dimension);
}

std::vector<Tensor> valid_ones(const Pieces& members) {
  std::vector<Tensor> valid;
  std::copy_if(members.begin(), members.end(), std::back_inserter(valid),
               [](Tensor tensor) { return tensor.valid(); });
  return valid;
}

}  // namespace

/// A conversion within a group of locations: along one axis, at one place of the others.
struct Resharder::Change {
  const Mesh& mesh;
  int axis = 0;
  std::vector<Location> locations;  ///< of the members
  const Shape& whole;
  Placement from;
  Placement to;
  bool is_gradient = false;

  int size() const { return static_cast<int>(locations.size()); }

  /// What a member has of a dimension of this extent. The extent is the whole's, or, where another axis
  /// splits the same dimension, a part of it that has whole units.
  Range range(const Placement& placement, std::int64_t extent, int member) const {
    const std::int64_t each = whole[placement.dimension] / placement.units;
    PURINE_CHECK(extent % each == 0);
    Placement here = placement;
    if (placement.units != 1) here.units = extent / each;
    const Range units = unit_range(mesh, axis, here, member);
    return {units.begin * each, units.end * each};
  }

  /// The members in the order of their units.
  std::vector<int> order(const Placement& placement) const {
    std::vector<int> members;
    for (int i = 0; i < size(); ++i) members.push_back((placement.first + i) % size());
    return members;
  }
};

std::vector<Range> element_ranges(const Mesh& mesh, const Shape& whole, const Spec& spec, int location) {
  std::vector<Range> ranges;
  for (const std::int64_t extent : whole) ranges.push_back({0, extent});
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    Placement placement = spec[static_cast<std::size_t>(axis)];
    if (!placement.is_split()) continue;
    Range& range = ranges[static_cast<std::size_t>(placement.dimension)];
    const std::int64_t each = whole[placement.dimension] / placement.units;
    if (placement.units != 1) placement.units = range.size() / each;
    const Range units = unit_range(mesh, axis, placement, mesh.coordinate(location, axis));
    range = {range.begin + units.begin * each, range.begin + units.end * each};
  }
  return ranges;
}

Pieces Resharder::convert(Pieces pieces, const TensorInfo& whole, Spec from, const Spec& to,
                          std::string_view path, bool is_gradient) {
  const int axes = mesh_.axis_count();
  const auto at = [](const Spec& spec, int axis) { return spec[static_cast<std::size_t>(axis)]; };
  // Where several axes split one dimension, the later ones split what the earlier ones leave. If any of them
  // changes, all that split the dimension are undone, the last first, and done again.
  for (int dimension = 0; dimension < whole.shape.rank(); ++dimension) {
    const auto splits = [&](const Placement& p) { return p.is_split() && p.dimension == dimension; };
    int concerned = 0;
    bool changes = false;
    for (int axis = 0; axis < axes; ++axis) {
      if (!splits(at(from, axis)) && !splits(at(to, axis))) continue;
      ++concerned;
      changes = changes || !same_on_axis(mesh_, axis, from, to);
    }
    if (!changes || concerned < 2) continue;
    for (int axis = axes - 1; axis >= 0; --axis) {
      if (!splits(at(from, axis))) continue;
      convert_axis(pieces, whole.shape, axis, from, replicated(), path, is_gradient);
      from[static_cast<std::size_t>(axis)] = replicated();
    }
  }
  for (int axis = 0; axis < axes; ++axis) {
    if (same_on_axis(mesh_, axis, from, to)) continue;
    convert_axis(pieces, whole.shape, axis, from, at(to, axis), path, is_gradient);
    from[static_cast<std::size_t>(axis)] = at(to, axis);
  }
  return pieces;
}

void Resharder::convert_axis(Pieces& pieces, const Shape& whole, int axis, const Spec& from,
                             const Placement& to, std::string_view path, bool is_gradient) {
  const Placement& now = from[static_cast<std::size_t>(axis)];
  PURINE_CHECK(to.kind != Kind::partial);
  if (now.is_replicated() && to.kind == Kind::varying) return;
  const bool summed = now.kind == Kind::partial || now.kind == Kind::varying;
  const std::string_view name = summed          ? (to.is_split() ? "reduce_scatter" : "all_reduce")
                                : to.is_split() ? (now.is_split() ? "all_to_all" : "slice")
                                                : "all_gather";
  const auto scope = graph_.reopen_scope(std::string(name) + "/" + std::string(path));
  for (int first = 0; first < mesh_.size(); ++first) {
    if (mesh_.coordinate(first, axis) != 0) continue;
    const std::vector<int> group = mesh_.group(first, axis);
    Change change{mesh_, axis, {}, whole, now, to, is_gradient};
    Pieces members;
    for (const int location : group) {
      members.push_back(pieces[static_cast<std::size_t>(location)]);
      change.locations.push_back(mesh_.locations()[static_cast<std::size_t>(location)]);
    }
    if (valid_ones(members).empty()) continue;
    if (now.kind == Kind::varying) members = weighted(members, axis, now);
    if (summed) {
      members = to.is_split() ? reduce_scatter(members, change) : all_reduce(members, change);
    } else if (to.is_split()) {
      members = now.is_split() ? all_to_all(members, change) : slices(members, change);
    } else {
      members = all_gather(members, change);
    }
    for (std::size_t i = 0; i < group.size(); ++i) pieces[static_cast<std::size_t>(group[i])] = members[i];
  }
}

/// Each member's approximation, times its share of the units.
Pieces Resharder::weighted(const Pieces& members, int axis, const Placement& from) const {
  Pieces result(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i].valid()) continue;
    const Range units = unit_range(mesh_, axis, from, static_cast<int>(i));
    const auto place = graph_.at(members[i].location());
    result[i] =
        ops::scale(members[i], static_cast<double>(units.size()) / static_cast<double>(from.units), "share");
  }
  return result;
}

Pieces Resharder::all_reduce(const Pieces& members, const Change& change) {
  const std::vector<Tensor> parts = valid_ones(members);
  if (parts.size() == 1) return broadcast(parts.front(), change.locations);
  const AllReduce& sum = change.is_gradient ? reductions_.of_gradients : reductions_.of_values;
  const std::vector<Tensor> sums = sum(parts, all_reduces_++);
  PURINE_CHECK_EQUAL(sums.size(), parts.size());
  Pieces result;
  auto next = sums.begin();
  for (std::size_t i = 0; i < members.size(); ++i) {
    result.push_back(members[i].valid() ? *next++ : ops::copy(sums.front(), change.locations[i]));
  }
  return result;
}

Pieces Resharder::reduce_scatter(const Pieces& members, const Change& change) const {
  const std::vector<Tensor> parts = valid_ones(members);
  const std::int64_t extent = parts.front().shape()[change.to.dimension];
  Pieces result;
  for (int i = 0; i < change.size(); ++i) {
    const Range range = change.range(change.to, extent, i);
    std::vector<Tensor> pieces;
    if (range.size() > 0) {
      for (const Tensor part : parts) pieces.push_back(slice(part, change.to.dimension, range));
    }
    const Location here = change.locations[static_cast<std::size_t>(i)];
    const Wire wire = change.is_gradient ? reductions_.gradient_wire : Wire();
    result.push_back(pieces.empty() ? Tensor() : reduce(pieces, here, wire));
  }
  return result;
}

Tensor Resharder::assembled(const Pieces& members, const Change& change, Location at) const {
  std::vector<Tensor> pieces;
  for (const int member : change.order(change.from)) {
    const Tensor piece = members[static_cast<std::size_t>(member)];
    if (piece.valid()) pieces.push_back(ops::copy(piece, at));
  }
  return concat(pieces, change.from.dimension, at);
}

Pieces Resharder::all_gather(const Pieces& members, const Change& change) const {
  // From every location to every other, or by way of one where that would be too many copies.
  constexpr int most_direct = 64;
  const std::vector<Tensor> pieces = valid_ones(members);
  if (pieces.size() == 1) return broadcast(pieces.front(), change.locations);
  if (change.size() > most_direct) {
    return broadcast(assembled(members, change, change.locations.front()), change.locations);
  }
  Pieces result;
  for (const Location location : change.locations) result.push_back(assembled(members, change, location));
  return result;
}

Pieces Resharder::all_to_all(const Pieces& members, const Change& change) const {
  const int gathered = change.from.dimension;
  const int divided = change.to.dimension;
  std::int64_t extent = 0;  // of the dimension that is divided, over all members
  for (const Tensor member : valid_ones(members)) {
    extent = gathered == divided ? extent + member.shape()[divided] : member.shape()[divided];
  }
  Pieces result;
  for (int i = 0; i < change.size(); ++i) {
    const Range wanted = change.range(change.to, extent, i);
    const Location here = change.locations[static_cast<std::size_t>(i)];
    std::vector<Tensor> pieces;
    std::int64_t begin = 0;
    for (const int member : change.order(change.from)) {
      const Tensor piece = members[static_cast<std::size_t>(member)];
      if (!piece.valid()) continue;
      Range range = wanted;
      if (gathered == divided) {
        const std::int64_t size = piece.shape()[divided];
        range = {std::clamp<std::int64_t>(wanted.begin - begin, 0, size),
                 std::clamp<std::int64_t>(wanted.end - begin, 0, size)};
        begin += size;
      }
      if (range.size() > 0) pieces.push_back(ops::copy(slice(piece, divided, range), here));
    }
    result.push_back(pieces.empty() ? Tensor() : concat(pieces, gathered, here));
  }
  return result;
}

Pieces Resharder::slices(const Pieces& members, const Change& change) const {
  Pieces result;
  for (int i = 0; i < change.size(); ++i) {
    const Tensor member = members[static_cast<std::size_t>(i)];
    Range range;
    if (member.valid()) range = change.range(change.to, member.shape()[change.to.dimension], i);
    result.push_back(range.size() > 0 ? slice(member, change.to.dimension, range) : Tensor());
  }
  return result;
}

Tensor Resharder::gather(Pieces pieces, const TensorInfo& whole, const Spec& from, std::string_view path) {
  const auto scope = graph_.reopen_scope("gather/" + std::string(path));
  for (int axis = mesh_.axis_count() - 1; axis >= 0; --axis) {
    const Placement& placement = from[static_cast<std::size_t>(axis)];
    for (int first = 0; first < mesh_.size() && !placement.is_replicated(); ++first) {
      if (mesh_.coordinate(first, axis) != 0) continue;
      Change change{mesh_, axis, {}, whole.shape, placement, replicated()};
      Pieces members;
      for (const int location : mesh_.group(first, axis)) {
        members.push_back(pieces[static_cast<std::size_t>(location)]);
        change.locations.push_back(mesh_.locations()[static_cast<std::size_t>(location)]);
      }
      if (valid_ones(members).empty()) continue;
      if (placement.kind == Kind::varying) members = weighted(members, axis, placement);
      const Location here = change.locations.front();
      pieces[static_cast<std::size_t>(first)] =
          placement.is_split() ? assembled(members, change, here) : reduce(valid_ones(members), here);
    }
  }
  return pieces.front();
}

Pieces Resharder::scatter(Tensor whole, const Spec& to, std::string_view path) {
  const bool is_whole =
      std::all_of(to.begin(), to.end(), [](const Placement& p) { return p.is_replicated(); });
  const auto scope = graph_.reopen_scope("scatter/" + std::string(path));
  if (is_whole) return broadcast(whole, mesh_.locations());
  Pieces pieces;
  for (int location = 0; location < mesh_.size(); ++location) {
    const std::vector<Range> ranges = element_ranges(mesh_, whole.shape(), to, location);
    const bool none =
        std::any_of(ranges.begin(), ranges.end(), [](Range range) { return range.size() == 0; });
    Tensor piece = whole;
    for (std::size_t i = 0; i < ranges.size() && !none; ++i) {
      piece = slice(piece, static_cast<int>(i), ranges[i]);
    }
    pieces.push_back(none ? Tensor()
                          : ops::copy(piece, mesh_.locations()[static_cast<std::size_t>(location)]));
  }
  return pieces;
}

}  // namespace purine::parallel
