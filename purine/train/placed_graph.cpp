#include "purine/train/placed_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "purine/core/amount_text.h"
#include "purine/core/error.h"
#include "purine/ops/copy.h"

namespace purine::train {
namespace {

// Divides a graph such that its variables lie as those of the same paths do in another one, divided before.
parallel::Partitioned divide_like(Graph& graph, const ParallelSetup& setup, Graph& other,
                                  const parallel::Partitioned& other_divided) {
  parallel::Specs specs(setup.mesh);
  for (const parallel::MeshAxis& axis : setup.mesh.axes()) {
    if (axis.name == "data") specs.split_samples(graph, axis.name);
  }
  for (const Variable variable : graph.variables()) {
    const Variable same = other.find_variable(variable.path());
    if (same.valid()) specs.set_all(variable, other_divided.spec(same));
  }
  return parallel::partition(graph, specs, setup.partition_options());
}

// Watched tensors that lie elsewhere are watched at rank 0 as well, so that one process has all values.
// Returns these tensors and what they are there.
std::vector<std::pair<Tensor, Tensor>> watch_at_first_rank(Graph& graph) {
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const Tensor tensor : graph.watched()) {
    if (tensor.location().rank == 0) continue;
    copies.emplace_back(tensor, ops::copy(tensor, Location{}, "read"));
    graph.watch(copies.back().second);
  }
  return copies;
}

}  // namespace

PlacedGraph::PlacedGraph(const ParallelSetup& setup, const Build& build, const PlacedGraph* like)
    : written_(std::make_unique<Graph>()) {
  if (!setup.is_divided()) {
    build(*written_, setup.devices().front());
    variables_ = parallel::whole_variables(*written_);
    return;
  }
  build(*written_, Location{});
  if (like != nullptr && setup.scheme->follows_specs) {
    PURINE_CHECK(like->divided_.has_value());
    divided_.emplace(divide_like(*written_, setup, *like->written_, *like->divided_));
  } else {
    divided_.emplace(setup.divide(*written_));
  }
  variables_ = parallel::whole_variables(*written_, *divided_);
  Graph& graph = divided_->graph();
  Graph::BatchRecipe recipe = graph.batch_recipe();
  copies_ = watch_at_first_rank(graph);
  if (!recipe.make) return;
  recipe.make = [make = std::move(recipe.make)](std::int64_t samples, Graph& out) {
    make(samples, out);
    watch_at_first_rank(out);
  };
  graph.set_batch_recipe(std::move(recipe));
}

void PlacedGraph::fit_memory(Runtime& runtime, std::size_t limit, SessionOptions& options) {
  fit_ = purine::fit_memory(runtime, placed(), limit, options);
  options.storage_distance = fit_.storage_distance;
}

std::string PlacedGraph::memory_text() const {
  if (fit_.bytes == fit_.bytes_before) return {};
  std::vector<std::string> ways;
  if (const std::size_t count = fit_.operators.size(); count > 0) {
    ways.push_back(fmt::format("{} run{} again for the backward pass", counted_text(count, "operator"),
                               count == 1 ? "s" : ""));
  }
  if (fit_.storage_distance < SessionOptions().storage_distance) ways.push_back("storage is reused sooner");
  return fmt::format("to fit into the memory limit, {}: a step needs {} instead of {}",
                     fmt::join(ways, ", and "), bytes_text(fit_.bytes), bytes_text(fit_.bytes_before));
}

Tensor PlacedGraph::at(Tensor tensor) const {
  Tensor there = tensor;
  if (divided_) {
    there = divided_->at(tensor);
    const auto copy =
        std::find_if(copies_.begin(), copies_.end(), [&](const auto& pair) { return pair.first == there; });
    if (copy != copies_.end()) there = copy->second;
  }
  return fit_.graph ? fit_.tensors[there.index()] : there;
}

bool PlacedGraph::can_share_variables_of(const PlacedGraph& other) const {
  // At which device of a rank makes no difference: between runs their values are in the host's memory.
  const auto same_piece = [](const parallel::WholeVariable::Piece& a,
                             const parallel::WholeVariable::Piece& b) {
    return a.path == b.path && a.ranges == b.ranges && a.location.rank == b.location.rank;
  };
  return std::all_of(variables_.begin(), variables_.end(), [&](const parallel::WholeVariable& variable) {
    const auto found =
        std::find_if(other.variables_.begin(), other.variables_.end(),
                     [&](const parallel::WholeVariable& any) { return any.path == variable.path; });
    return found != other.variables_.end() &&
           std::equal(variable.pieces.begin(), variable.pieces.end(), found->pieces.begin(),
                      found->pieces.end(), same_piece);
  });
}

}  // namespace purine::train
