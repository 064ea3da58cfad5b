#include "purine/parallel/operator_piece.h"

#include <utility>

#include "purine/core/error.h"

namespace purine::parallel {
namespace {

bool same_rule(const SplitRule& a, const SplitRule& b) {
  return a.inputs == b.inputs && a.outputs == b.outputs;
}

/// How many units of a division are left at a location by the axes before `axis`.
std::int64_t units_left(const Mesh& mesh, int location, std::span<const Division> divisions, int axis) {
  const Division& division = divisions[static_cast<std::size_t>(axis)];
  std::int64_t units = division.units;
  for (int i = 0; i < axis; ++i) {
    const Division& earlier = divisions[static_cast<std::size_t>(i)];
    if (!earlier.divided || !same_rule(earlier.rule, division.rule)) continue;
    PURINE_CHECK(earlier.units == division.units);
    units =
        unit_range(mesh, i, {Placement::Kind::split, 0, units, earlier.first}, mesh.coordinate(location, i))
            .size();
  }
  return units;
}

}  // namespace

ContractPtr operator_piece(const Mesh& mesh, int location, std::span<const Division> divisions,
                           const ContractPtr& contract, std::span<const TensorInfo> infos) {
  ContractPtr piece = contract;
  std::vector<TensorInfo> inputs;  // of the piece so far; those of the whole while it is empty
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    const Division& division = divisions[static_cast<std::size_t>(axis)];
    if (!division.divided) continue;
    const std::int64_t units = units_left(mesh, location, divisions, axis);
    const Range range = unit_range(mesh, axis, {Placement::Kind::split, 0, units, division.first},
                                   mesh.coordinate(location, axis));
    if (range.size() == 0) return nullptr;
    if (range.size() == units) continue;
    SplitRule rule = division.rule;
    if (piece != contract || !inputs.empty()) {
      bool found = false;
      for (SplitRule& candidate : piece->split_rules(inputs)) {
        if (!same_rule(candidate, division.rule)) continue;
        rule = std::move(candidate);
        found = true;
        break;
      }
      PURINE_CHECK(found);
    }
    PURINE_CHECK(rule.units % units == 0);
    const std::int64_t each = rule.units / units;
    if (inputs.empty()) inputs.assign(infos.begin(), infos.end());
    piece = piece->piece(rule, {range.begin * each, range.end * each, rule.units}, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const int dimension = rule.inputs[i];
      if (dimension < 0) continue;
      inputs[i].shape.set(dimension, inputs[i].shape[dimension] / units * range.size());
    }
  }
  return piece;
}

}  // namespace purine::parallel
