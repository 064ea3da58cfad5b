// The piece of a divided operator at a location.
#pragma once

#include <span>
#include <vector>

#include "purine/graph/contract.h"
#include "purine/parallel/plan.h"

namespace purine::parallel {

/// The contract of a location's piece of an operator whose whole inputs are `infos`; null where the location
/// has none. Several axes may divide by the same rule: the later ones divide what the earlier ones leave.
ContractPtr operator_piece(const Mesh& mesh, int location, std::span<const Division> divisions,
                           const ContractPtr& contract, std::span<const TensorInfo> infos);

}  // namespace purine::parallel
