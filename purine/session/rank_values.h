// Whole tensors whose pieces lie at several ranks.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "purine/io/host_tensor.h"
#include "purine/parallel/whole_variable.h"
#include "purine/session/runtime.h"
#include "purine/session/variables.h"

namespace purine {

/// Gives the elements of a whole variable; they need to be valid until the next call only.
using ReadWhole = std::function<std::span<const std::byte>(const parallel::WholeVariable&)>;

/// The whole values of variables, sorted by path, at rank 0, which has all ranks send it their pieces;
/// nothing at the others. In one process it is whole_values(). A collective call between runs.
std::vector<io::HostTensor> gather_whole_values(Runtime& runtime,
                                                std::span<const parallel::WholeVariable> variables,
                                                const Variables& values);

/// Gives all pieces at all ranks the elements of their whole, which `read` gives at rank 0, and is not called
/// elsewhere. What it throws, RemoteError says at the others. A collective call between runs.
void divide_whole_values(Runtime& runtime, std::span<const parallel::WholeVariable> variables,
                         const ReadWhole& read, Variables& values);

}  // namespace purine
