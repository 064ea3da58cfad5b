// Operators that only move ranges of bytes: where the bytes may lie there already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "purine/program/lowered.h"

namespace purine::program {

/// An input and an output of an operator of which one is a range of the other's bytes.
struct ByteRange {
  std::uint32_t whole = 0;  ///< lowered tensor
  std::uint32_t part = 0;   ///< lowered tensor
  std::size_t offset = 0;   ///< bytes of the whole before the part
};

/// Of a slice: its output, as a part of its input. Of a concatenation: its inputs, as parts of its output.
/// None unless the parts are contiguous in memory: in the tensor's layout, plain if none is assigned yet, all
/// dimensions outside of the one that is cut have one element.
std::vector<ByteRange> byte_ranges(const Lowered& lowered, const LoweredOperator& op);

/// Whether an operator's only output is its only input, bytes and all, though it has something to do: it
/// checks them. Both may lie in the same bytes, whoever else reads these.
bool passes_through(const LoweredOperator& op);

/// The slice of a variable's current value that the producer of `range.part` may overwrite, is the only one
/// to read, and that has the same bytes of the variable; otherwise none.
std::uint32_t overwritten_slice(const Lowered& lowered, std::uint32_t current, const ByteRange& range);

}  // namespace purine::program
