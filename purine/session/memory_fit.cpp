#include "purine/session/memory_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "purine/core/error.h"
#include "purine/gradient/recompute.h"
#include "purine/program/program.h"
#include "purine/session/gather_values.h"
#include "purine/session/session_program.h"

namespace purine {
namespace {

std::string megabytes(std::size_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

class Fitter {
 public:
  Fitter(Runtime& runtime, Graph& graph, std::size_t limit, const SessionOptions& options)
      : runtime_(runtime), graph_(graph), limit_(limit), options_(options) {}

  MemoryFit run() {
    MemoryFit fit;
    fit.storage_distance = options_.storage_distance;
    fit.bytes_before = fit.bytes = most_of_all(planned_bytes(graph_, fit.storage_distance));
    if (fit.bytes <= limit_) return fit;
    taken_.resize(ways_.size(), false);
    for (const std::uint32_t distance : {fit.storage_distance, 4U, 0U}) {
      reuse_at(distance, fit);
      std::size_t before = 0;
      do {
        before = fit.bytes;
        for (std::size_t way = 0; way < ways_.size() && fit.bytes > limit_; ++way) try_way(way, fit);
      } while (fit.bytes > limit_ && fit.bytes < before);
      if (fit.bytes <= limit_) return fit;
    }
    throw Error("memory",
                fmt::format("a step needs {}, or {} where activations are computed again instead of being "
                            "kept; the limit is {}",
                            megabytes(fit.bytes_before), megabytes(fit.bytes), megabytes(limit_)),
                "raise the limit, or take a smaller batch");
  }

 private:
  /// Reuses storage at another distance, if the plan needs less with it.
  void reuse_at(std::uint32_t distance, MemoryFit& fit) const {
    if (distance >= fit.storage_distance) return;
    Graph& graph = fit.graph ? *fit.graph : graph_;
    const std::size_t bytes = most_of_all(planned_bytes(graph, distance));
    if (bytes >= fit.bytes) return;
    fit.bytes = bytes;
    fit.storage_distance = distance;
  }

  /// Takes a way if the plan needs less with it. What is freed is not always where something else fits, so
  /// that one that doesn't help now can do so once others are taken.
  void try_way(std::size_t way, MemoryFit& fit) {
    if (taken_[way]) return;
    taken_[way] = true;
    MemoryFit tried;
    tried.bytes_before = fit.bytes_before;
    tried.storage_distance = fit.storage_distance;
    tried.operators = operators_taken();
    tried.graph = std::make_unique<Graph>();
    tried.tensors = recompute(graph_, tried.operators, *tried.graph);
    tried.bytes = most_of_all(planned_bytes(*tried.graph, fit.storage_distance));
    taken_[way] = tried.bytes < fit.bytes;
    if (taken_[way]) fit = std::move(tried);
  }

  std::vector<std::string> operators_taken() const {
    std::vector<std::string> paths;
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      if (!taken_[way]) continue;
      for (const Operator op : ways_[way].operators) paths.push_back(op.path());
    }
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    return paths;
  }

  /// The most of any process.
  std::size_t most_of_all(std::size_t bytes) const {
    const std::vector<std::uint64_t> all = gather_values(runtime_.endpoint(), std::uint64_t{bytes});
    return *std::max_element(all.begin(), all.end());
  }

  std::size_t planned_bytes(Graph& graph, std::uint32_t storage_distance) const {
    FreezeOptions freeze = freeze_options(runtime_, options_);
    freeze.bind_kernels = false;
    freeze.memory.distance = storage_distance;
    const Program program(graph, freeze);
    std::size_t bytes = scratch_ * static_cast<std::size_t>(runtime_.workers());
    for (const MemoryUse& use : program.memory()) bytes += use.variables + use.arena + use.slots;
    return bytes;
  }

  /// Of a worker. What runs again needs no more than what runs.
  static std::size_t scratch_bytes(const Runtime& runtime, Graph& graph, const SessionOptions& options) {
    FreezeOptions freeze = freeze_options(runtime, options);
    freeze.host_input = freeze.host_read = [](Tensor) { return make_kernel([](const KernelCall&) {}); };
    const Program program(graph, freeze);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < program.places().size(); ++i) {
      if (program.places()[i].kind != DeviceKind::cpu) continue;
      bytes = std::max(bytes, program.memory()[i].scratch_per_worker);
    }
    return bytes;
  }

  Runtime& runtime_;
  Graph& graph_;
  const std::size_t limit_;
  const SessionOptions& options_;
  const std::vector<Recomputation> ways_ = recomputations(graph_);
  const std::size_t scratch_ = scratch_bytes(runtime_, graph_, options_);
  std::vector<bool> taken_;  // by way
};

}  // namespace

MemoryFit fit_memory(Runtime& runtime, Graph& graph, std::size_t limit, const SessionOptions& options) {
  return Fitter(runtime, graph, limit, options).run();
}

}  // namespace purine
