#include "purine/parallel/spec.h"

#include <fmt/format.h>

#include "purine/core/error.h"
#include "purine/graph/transform.h"

namespace purine::parallel {
namespace {

std::string placement_text(const Placement& placement) {
  switch (placement.kind) {
    case Placement::Kind::replicated:
      return "replicated";
    case Placement::Kind::partial:
      return "partial";
    case Placement::Kind::varying:
      return "varying";
    case Placement::Kind::split:
      break;
  }
  std::string text = fmt::format("split {}", placement.dimension);
  if (placement.units > 0) text += fmt::format(" by {} units", placement.units);
  if (placement.first > 0) text += fmt::format(" from {}", placement.first);
  return text;
}

}  // namespace

Range unit_range(const Mesh& mesh, int axis, const Placement& placement, int coordinate) {
  const int size = mesh.axis_size(axis);
  const int block = (coordinate - placement.first + size) % size;
  if (placement.units == 1) return {0, block == 0 ? 1 : 0};  // whatever the shares
  return mesh.part(axis, placement.units, block);
}

std::string text(const Mesh& mesh, const Spec& spec) {
  std::string all;
  for (std::size_t i = 0; i < spec.size(); ++i) {
    all += fmt::format("{}{}: {}", i > 0 ? ", " : "", mesh.axes()[i].name, placement_text(spec[i]));
  }
  return all;
}

Specs& Specs::set(Tensor tensor, std::string_view axis, Placement placement) {
  const int index = mesh_.axis(axis);
  if (placement.is_split()) {
    const Shape& shape = tensor.shape();
    const bool exists = placement.dimension >= 0 && placement.dimension < shape.rank();
    if (!exists || placement.units < 0 || placement.first < 0 || placement.first >= mesh_.axis_size(index)) {
      throw Error("parallel", fmt::format("is {}, it cannot be {} over {}", tensor.info().text(),
                                          placement_text(placement), mesh_.text()))
          .at(tensor.path());
    }
    const std::int64_t extent = shape[placement.dimension];
    if (placement.units > 0 && (extent == 0 || extent % placement.units != 0)) {
      throw Error("parallel", fmt::format("is {}, its dimension {} doesn't consist of {} units",
                                          tensor.info().text(), placement.dimension, placement.units))
          .at(tensor.path());
    }
  } else if (!placement.is_replicated()) {
    throw Error("parallel",
                "is said to be " + placement_text(placement) + "; replicated or split can be said")
        .at(tensor.path());
  }
  const Spec* said = find(tensor);
  for (std::size_t i = 0; said != nullptr && placement.is_split() && i < said->size(); ++i) {
    const Placement& other = (*said)[i];
    const bool same_dimension = other.is_split() && other.dimension == placement.dimension;
    if (static_cast<int>(i) == index || !same_dimension || other.units == placement.units) continue;
    throw Error("parallel", fmt::format("its dimension {} can't be split by different units over {} and {}",
                                        placement.dimension, mesh_.axes()[i].name, axis))
        .at(tensor.path());
  }
  Spec& spec = specs_.try_emplace(tensor.index(), static_cast<std::size_t>(mesh_.axis_count())).first->second;
  spec[static_cast<std::size_t>(index)] = placement;
  return *this;
}

Specs& Specs::set_all(Tensor tensor, const Spec& spec) {
  for (std::size_t i = 0; i < spec.size(); ++i) set(tensor, mesh_.axes()[i].name, spec[i]);
  return *this;
}

Specs& Specs::split_samples(Graph& graph, std::string_view axis) {
  const std::int64_t samples = batch_size(graph);
  for (const Tensor input : graph.inputs()) {
    if (input.shape().rank() > 0 && input.shape()[0] == samples) set(input, axis, split(0));
  }
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    if (!graph.op(i).contract().brings_samples()) continue;
    for (const Tensor output : graph.op(i).outputs()) set(output, axis, split(0));
  }
  return *this;
}

const Spec* Specs::find(Tensor tensor) const {
  const auto found = specs_.find(tensor.index());
  return found == specs_.end() ? nullptr : &found->second;
}

}  // namespace purine::parallel
