#include "purine/session/whole_values.h"

#include <algorithm>
#include <cstring>

#include "purine/core/error.h"

namespace purine {
namespace {

using parallel::Range;
using parallel::WholeVariable;

// Calls `run` with (offset in the whole, offset in the piece, bytes) for every run of elements that is
// contiguous in both.
template <typename Run>
void for_each_run(const TensorInfo& info, std::span<const Range> ranges, const Run& run) {
  const Shape& shape = info.shape;
  PURINE_CHECK_EQUAL(static_cast<std::size_t>(shape.rank()), ranges.size());
  const std::size_t element = size_of(info.dtype);
  // Dimensions from `inner` on are whole, so that a run spans them and a range of the one before.
  int inner = shape.rank();
  while (inner > 0 && ranges[static_cast<std::size_t>(inner) - 1] == Range{0, shape[inner - 1]}) --inner;
  std::size_t length = element;
  for (int d = inner; d < shape.rank(); ++d) length *= static_cast<std::size_t>(shape[d]);
  const int outer = std::max(inner - 1, 0);
  std::size_t runs = 1;
  for (int d = 0; d < outer; ++d)
    runs *= static_cast<std::size_t>(ranges[static_cast<std::size_t>(d)].size());
  std::size_t begin = 0;
  std::size_t bytes = length;
  if (inner > 0) {
    const Range& range = ranges[static_cast<std::size_t>(outer)];
    begin = static_cast<std::size_t>(range.begin) * length;
    bytes = static_cast<std::size_t>(range.size()) * length;
    length *= static_cast<std::size_t>(shape[outer]);
  }
  for (std::size_t number = 0; number < runs; ++number) {
    std::size_t offset = begin;
    std::size_t stride = length;
    std::size_t rest = number;
    for (int d = outer - 1; d >= 0; --d) {
      const Range& range = ranges[static_cast<std::size_t>(d)];
      const auto extent = static_cast<std::size_t>(range.size());
      offset += (static_cast<std::size_t>(range.begin) + rest % extent) * stride;
      rest /= extent;
      stride *= static_cast<std::size_t>(shape[d]);
    }
    run(offset, number * bytes, bytes);
  }
}

}  // namespace

void copy_from_whole(const TensorInfo& info, std::span<const Range> ranges, std::span<const std::byte> whole,
                     std::span<std::byte> piece) {
  for_each_run(info, ranges, [&](std::size_t offset, std::size_t at, std::size_t bytes) {
    PURINE_CHECK(offset + bytes <= whole.size() && at + bytes <= piece.size());
    std::memcpy(piece.data() + at, whole.data() + offset, bytes);
  });
}

void copy_to_whole(const TensorInfo& info, std::span<const Range> ranges, std::span<const std::byte> piece,
                   std::span<std::byte> whole) {
  for_each_run(info, ranges, [&](std::size_t offset, std::size_t at, std::size_t bytes) {
    PURINE_CHECK(offset + bytes <= whole.size() && at + bytes <= piece.size());
    std::memcpy(whole.data() + offset, piece.data() + at, bytes);
  });
}

io::HostTensor gather(const WholeVariable& variable, const ReadPiece& read) {
  io::HostTensor tensor{variable.path, variable.info, std::vector<std::byte>(variable.info.bytes())};
  for (const std::size_t number : variable.distinct()) {
    const WholeVariable::Piece& piece = variable.pieces[number];
    copy_to_whole(variable.info, piece.ranges, read(piece), tensor.data);
  }
  return tensor;
}

std::vector<io::HostTensor> whole_values(std::span<const WholeVariable> variables, const Variables& values) {
  std::vector<io::HostTensor> tensors;
  const auto read = [&](const WholeVariable::Piece& piece) -> std::span<const std::byte> {
    return values.at(piece.path).bytes();
  };
  for (const WholeVariable& variable : variables) tensors.push_back(gather(variable, read));
  std::sort(tensors.begin(), tensors.end(),
            [](const io::HostTensor& a, const io::HostTensor& b) { return a.name < b.name; });
  return tensors;
}

void set_whole_value(const WholeVariable& variable, std::span<const std::byte> whole, Variables& values) {
  for (const WholeVariable::Piece& piece : variable.pieces) {
    if (!values.has(piece.path)) continue;
    copy_from_whole(variable.info, piece.ranges, whole, values.at(piece.path).bytes());
  }
}

std::optional<std::string> find_unequal_replica(std::span<const WholeVariable> variables,
                                                const Variables& values) {
  for (const WholeVariable& variable : variables) {
    for (const WholeVariable::Piece& piece : variable.pieces) {
      const auto first =
          std::find_if(variable.pieces.begin(), variable.pieces.end(),
                       [&](const WholeVariable::Piece& other) { return other.ranges == piece.ranges; });
      const std::span<const std::byte> left = values.at(first->path).bytes();
      const std::span<const std::byte> right = values.at(piece.path).bytes();
      if (!std::equal(left.begin(), left.end(), right.begin(), right.end())) return piece.path;
    }
  }
  return std::nullopt;
}

}  // namespace purine
