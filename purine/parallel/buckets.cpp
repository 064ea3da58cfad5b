#include "purine/parallel/buckets.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "purine/ops/concat.h"
#include "purine/ops/constant.h"
#include "purine/ops/reshape.h"
#include "purine/parallel/partitioned_data.h"

namespace purine::parallel {
namespace {

/// Freezing aliases ranges that begin at multiples of this.
constexpr std::size_t alignment = 64;

/// The one axis along which a tensor is partial, if it is whole along all others; otherwise -1.
int partial_axis(const Spec& spec) {
  int found = -1;
  for (std::size_t axis = 0; axis < spec.size(); ++axis) {
    if (spec[axis].is_replicated()) continue;
    if (spec[axis].kind != Placement::Kind::partial || found >= 0) return -1;
    found = static_cast<int>(axis);
  }
  return found;
}

/// Elements between a tensor and the next one.
std::int64_t padding_after(const TensorInfo& info) {
  const std::size_t rest = info.bytes() % alignment;
  return rest == 0 ? 0 : static_cast<std::int64_t>((alignment - rest) / size_of(info.dtype));
}

Tensor reshape(Tensor x, const Shape& shape, const char* name) {
  if (x.shape() == shape) return x;
  return ops::reshape(x, {shape.begin(), shape.end()}, name);
}

}  // namespace

Buckets::Buckets(Graph& graph, const Plan& plan, std::size_t bytes)
    : bucket_of_(graph.tensor_count(), no_piece) {
  std::vector<bool> is_needed_whole(graph.tensor_count(), false);
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    const Operator op = graph.op(i);
    for (int k = 0; k < op.input_count(); ++k) {
      if (is_whole(needed_spec(plan, op, k))) is_needed_whole[op.input(k).index()] = true;
    }
  }
  for (const Variable variable : graph.variables()) {
    if (variable.has_next() && is_whole(plan.tensors[variable.index()])) {
      is_needed_whole[variable.next().index()] = true;
    }
  }
  struct Open {
    std::size_t bytes = 0;
    std::size_t limit = 0;
    std::uint32_t bucket = 0;
  };
  std::map<std::tuple<DType, int, bool>, Open> open;
  for (std::uint32_t t = graph.tensor_count(); t-- > 0;) {
    const TensorInfo& info = graph.tensor(t).info();
    const int axis = partial_axis(plan.tensors[t]);
    if (!is_needed_whole[t] || axis < 0 || partial_axis(plan.results[t]) != axis) continue;
    if (info.bytes() == 0 || info.bytes() > bytes / 4) continue;
    const bool of_gradient = is_gradient(graph.tensor(t).producer());
    const auto [entry, first] = open.try_emplace({info.dtype, axis, of_gradient});
    Open& into = entry->second;
    if (first || into.bytes + info.bytes() > into.limit) {
      into = {0, first ? bytes / 8 : bytes, static_cast<std::uint32_t>(buckets_.size())};
      buckets_.emplace_back();
    }
    into.bytes += info.bytes();
    buckets_[into.bucket].push_back(t);
    bucket_of_[t] = into.bucket;
  }
  for (std::vector<std::uint32_t>& bucket : buckets_) std::reverse(bucket.begin(), bucket.end());
}

std::span<const std::uint32_t> Buckets::with(std::uint32_t tensor) const {
  if (bucket_of_[tensor] == no_piece) return {};
  return buckets_[bucket_of_[tensor]];
}

std::vector<Pieces> convert_bucket(Graph& graph, Resharder& resharder, std::span<const Pieces> tensors,
                                   const Spec& from, std::string_view path, bool are_gradients) {
  const std::size_t locations = tensors.front().size();
  Pieces bucket(locations);
  std::vector<Shape> shapes;
  TensorInfo info;
  for (std::size_t i = 0; i < locations; ++i) {
    if (!tensors.front()[i].valid()) continue;
    const auto place = graph.at(tensors.front()[i].location());
    const auto scope = graph.reopen_scope(path);
    std::vector<Tensor> flat;
    shapes.clear();
    for (const Pieces& pieces : tensors) {
      const Tensor piece = pieces[i];
      shapes.push_back(piece.shape());
      flat.push_back(reshape(piece, {piece.shape().elements()}, "flat"));
      const std::int64_t padding = padding_after(piece.info());
      if (padding == 0 || shapes.size() == tensors.size()) continue;
      flat.push_back(ops::constant(graph, {{padding}, piece.dtype()}, 0, "padding"));
    }
    bucket[i] = ops::concat(flat, 0, "bucket");
    info = bucket[i].info();
  }
  const Pieces reduced =
      resharder.convert(std::move(bucket), info, from, Spec(from.size()), path, are_gradients);
  std::vector<Pieces> results(tensors.size(), Pieces(locations));
  for (std::size_t i = 0; i < locations; ++i) {
    const auto place = graph.at(reduced[i].location());
    const auto scope = graph.reopen_scope(path);
    std::int64_t begin = 0;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const std::int64_t end = begin + shapes[t].elements();
      results[t][i] = reshape(ops::slice(reduced[i], 0, begin, end, "part"), shapes[t], "shaped");
      begin = end + padding_after({shapes[t], info.dtype});
    }
  }
  return results;
}

}  // namespace purine::parallel
