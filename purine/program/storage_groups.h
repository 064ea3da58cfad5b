// Which tensors lie in the same bytes, decided before it is where these bytes are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "purine/program/memory_plan.h"

namespace purine::program {

/// Tensors that lie in the same bytes: in all of them, or each in a range of them.
///
/// What is written into a group follows what was read of the same bytes by values: an operator overwrites a
/// tensor only where nobody else reads the newest content of these bytes, in whatever tensor. The one
/// exception is a concatenation that is completed where its first parts lie, by the operator itself or by
/// what is received of it, which StorageGroups::orders put behind what was sent of the bytes. So within a
/// group no further orders are needed. What held the bytes before must precede every operator that begins to
/// write without having read any of the group.
struct StorageGroup {
  TensorStorage::Kind kind = TensorStorage::Kind::arena;
  std::uint32_t place = 0;
  std::size_t bytes = 0;  ///< of the largest tensor
  std::uint32_t slots = 1;
  std::vector<std::uint32_t> tensors;  ///< none of a group that became a part of another
  std::vector<std::uint32_t> version;  ///< those of them that hold the newest content, of some of the bytes
};

struct StorageGroups {
  std::vector<StorageGroup> groups;
  std::vector<std::uint32_t> group_of;       ///< by lowered tensor; none for inputs without storage
  std::vector<std::size_t> offset_in_group;  ///< by lowered tensor
  std::vector<bool> elided;                  ///< by operator, as in MemoryPlan
  std::vector<StorageOrder> orders;          ///< without delay, forward in the serial order
};

/// Forms the groups of plan_memory, whose worked example is one of them. A second one, of an exchange of two
/// halves a and b of a gradient g of 32 f32: `slice(g, 0, 16)` is a view, `sum(a, received)` overwrites its
/// bytes, as the rest of g is another tensor's matter, and `concat(sum, received sum)` is g's bytes again:
/// the first half is there, the second is received over b, or copied over it, after b was sent.
StorageGroups form_storage_groups(const Lowered& lowered, std::span<const std::uint32_t> order,
                                  const MemoryOptions& options);

}  // namespace purine::program
