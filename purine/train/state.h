// Between the variables of sessions and checkpoints.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/io/checkpoint.h"
#include "purine/session/variables.h"

namespace purine::train {

/// Gives the variables of a graph the values of a checkpoint. All of them must be in it, with the same shapes
/// and dtypes; else an Error names the first that isn't, and no variable has changed. Tensors that the graph
/// has no variable for are passed over where `rest_is_ignored`, and an Error otherwise.
void set_values(Graph& graph, Variables& variables, std::span<const io::HostTensor> tensors,
                bool rest_is_ignored);

}  // namespace purine::train
