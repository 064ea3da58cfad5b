// Drawings of graphs that a page has room for.
#pragma once

#include <cstddef>
#include <string>

#include "purine/graph/graph.h"

namespace purine {

struct DotOptions {
  /// Scopes are folded into one box each until at most so many vertices are drawn, or all scopes are folded:
  /// the largest ones are opened as long as there is room. 0: none is folded.
  std::size_t most_vertices = 0;
};

/// The graph in the language of graphviz, as dot(graph) of graph.h, with scopes as clusters and, where they
/// are folded, as boxes. A line between boxes stands for one tensor, and has its shape, or for several. Each
/// location has a colour, which a frame of its own tells where there are two to eight.
std::string dot(Graph& graph, const DotOptions& options);

}  // namespace purine
