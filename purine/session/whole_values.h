// Between whole tensors and the pieces of them that variables hold.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "purine/io/host_tensor.h"
#include "purine/parallel/whole_variable.h"
#include "purine/session/variables.h"

namespace purine {

/// Copies a piece's elements out of, or into, a whole tensor of this info. Both are row-major.
void copy_from_whole(const TensorInfo& info, std::span<const parallel::Range> ranges,
                     std::span<const std::byte> whole, std::span<std::byte> piece);
void copy_to_whole(const TensorInfo& info, std::span<const parallel::Range> ranges,
                   std::span<const std::byte> piece, std::span<std::byte> whole);

/// Gives the bytes of a piece: of this process's own variables, or as another process sent them. They need to
/// be valid until the next call only.
using ReadPiece = std::function<std::span<const std::byte>(const parallel::WholeVariable::Piece&)>;
/// Makes the whole of a variable. Asks for each distinct piece once, in their order.
io::HostTensor gather(const parallel::WholeVariable& variable, const ReadPiece& read);

/// The whole values of variables of which this process has all pieces; sorted by path.
std::vector<io::HostTensor> whole_values(std::span<const parallel::WholeVariable> variables,
                                         const Variables& values);
/// Gives those pieces of a variable that are among `values` the elements of its whole.
void set_whole_value(const parallel::WholeVariable& variable, std::span<const std::byte> whole,
                     Variables& values);

/// The path of the first replica that doesn't have the bits of the one before it; nothing if all do. For
/// tests and for finding mistakes: replicas are made by the same operators from the same bits.
std::optional<std::string> find_unequal_replica(std::span<const parallel::WholeVariable> variables,
                                                const Variables& values);

}  // namespace purine
