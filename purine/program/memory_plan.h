// Where every tensor lies, decided before anything runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "purine/program/lowered.h"

namespace purine::program {

/// Storage begins at multiples of this, and sizes are rounded up to it.
inline constexpr std::size_t storage_alignment = 64;

struct TensorStorage {
  enum class Kind : std::uint8_t {
    arena,     ///< bytes of its place's arena, shared over time with other tensors
    slots,     ///< bytes of its own at the arena's end, `slots` times: version t lies in slot t mod slots
    variable,  ///< the storage of a variable, which outlives the program
  };
  Kind kind = Kind::arena;
  std::uint32_t slots = 1;
  std::size_t offset = 0;  ///< in the arena; for variables the variable's index
  std::size_t stride = 0;  ///< bytes from slot to slot
  std::size_t begin = 0;   ///< bytes of a variable before a part of it
};

/// `after` starts its firing t only when `before` has finished its firing t - delay.
struct StorageOrder {
  std::uint32_t before = 0;
  std::uint32_t after = 0;
  std::uint32_t delay = 0;
  auto operator<=>(const StorageOrder& other) const = default;
};

/// The memory that a place needs.
struct Arena {
  std::size_t bytes = 0;       ///< slots included
  std::size_t slot_bytes = 0;  ///< of those, what tensors with slots of their own take
};

struct MemoryPlan {
  std::vector<TensorStorage> tensors;  ///< by lowered tensor
  std::vector<bool> elided;  ///< by operator: its outputs are views of its inputs, it has nothing to do
  std::vector<StorageOrder> orders;  ///< sorted, each once
  std::vector<Arena> arenas;         ///< by place
};

struct MemoryOptions {
  std::uint32_t slots = 2;  ///< of the outputs of operators that bring data in
  /// Storage freed by an operator is given, where the arena would not have to grow, only to operators at
  /// least this many places later in the serial order, so that reuse seldom makes neighbours wait for one
  /// another.
  std::uint32_t distance = 16;
  /// What is received, and has at least so many bytes, has none of its own where it completes a tensor whose
  /// bytes have been sent. The receive then waits for these, and its sender for word that it is posted: a
  /// matter of milliseconds on a slow link, and little beside a large message.
  std::size_t received_in_place = std::size_t{1} << 20;
  bool reuse = true;  ///< false: every tensor has its own storage (to find mistakes)
};

/// Plans the storage of all tensors.
///
/// An operator whose contract allows it computes in place, or is a view of its input. A slice is a view of a
/// range, and what is concatenated is made in the result's storage, where the parts are contiguous in memory,
/// begin at multiples of the alignment, and lie in the same place as the whole. Worked example: `concat(a,
/// b)` of two tensors of 16 f32 each along their only dimension has 128 bytes, a's producer writes the first
/// 64 of them, b's the last, and the concatenation is elided.
///
/// B may take over A's bytes iff everything that touches A precedes B's producer within an iteration; where
/// that does not follow from values, a StorageOrder without delay is added, always forward in the serial
/// order, so the orders without delay stay acyclic. Around the iteration, the last touchers of all bytes
/// precede the first producer on those bytes with delay 1. What waits for another rank shares no bytes with
/// what does not: the next iteration would wait for the network where no value makes it. What is made without
/// waiting, but held until the network is done, like a gradient until its sum has come back, has bytes of its
/// own unless values order it. What is large and completes such a gradient is received in its bytes. Worked
/// example, a -> b -> c -> d in a chain of equal sizes: d takes a's bytes (a's reader b precedes d by values:
/// nothing is added), and `d before a` is added with delay 1, like `c before b`.
MemoryPlan plan_memory(const Lowered& lowered, std::span<const std::uint32_t> order,
                       const MemoryOptions& options);

}  // namespace purine::program
