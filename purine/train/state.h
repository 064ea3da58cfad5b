// Between the variables of sessions and checkpoints.
#pragma once

#include <span>
#include <vector>

#include "purine/io/checkpoint.h"
#include "purine/parallel/whole_variable.h"
#include "purine/session/runtime.h"
#include "purine/session/variables.h"

namespace purine::train {

/// Gives variables, however they are divided among devices and ranks, the values of a checkpoint, which holds
/// them whole; rank 0 has its tensors. All variables must be in it, with the same shapes and dtypes; else an
/// Error names the first that isn't, and no variable has changed. Tensors that are none of the variables are
/// passed over where `rest_is_ignored`, and an Error otherwise. A collective call.
void set_values(Runtime& runtime, std::span<const parallel::WholeVariable> variables, Variables& values,
                std::span<const io::HostTensor> tensors, bool rest_is_ignored);

}  // namespace purine::train
