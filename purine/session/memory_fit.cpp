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
    MemoryFit least = attempt(options_.storage_distance);
    if (least.bytes <= limit_) return least;
    const std::size_t bytes_before = least.bytes;
    // What helps at one distance can be in the way at another, so that each begins anew.
    std::vector<std::uint32_t> distances = {options_.storage_distance};
    for (const std::uint32_t sooner : {4U, 0U}) {
      if (sooner < options_.storage_distance) distances.push_back(sooner);
    }
    for (const std::uint32_t distance : distances) {
      MemoryFit fit = search(distance);
      fit.bytes_before = bytes_before;
      if (fit.bytes <= limit_) return fit;
      if (fit.bytes < least.bytes) least = std::move(fit);
    }
    throw Error("memory",
                fmt::format("a step needs {}, {}; the limit is {}", megabytes(bytes_before),
                            least_text(least), megabytes(limit_)),
                "raise the limit, or take a smaller batch");
  }

 private:
  /// What is planned at a distance, with the ways that are taken.
  MemoryFit attempt(std::uint32_t distance) {
    MemoryFit fit;
    fit.storage_distance = distance;
    fit.operators = operators_taken();
    if (!fit.operators.empty()) {
      fit.graph = std::make_unique<Graph>();
      fit.tensors = recompute(graph_, fit.operators, *fit.graph);
    }
    fit.bytes = most_of_all(planned_bytes(fit.graph ? *fit.graph : graph_, distance));
    fit.bytes_before = fit.bytes;
    return fit;
  }

  /// Takes ways, one after the other, where the plan needs less with it. What is freed is not always where
  /// something else fits, so that one that doesn't help at first can do so once others are taken.
  MemoryFit search(std::uint32_t distance) {
    taken_.assign(ways_.size(), false);
    MemoryFit fit = attempt(distance);
    std::size_t before = 0;
    do {
      before = fit.bytes;
      for (std::size_t way = 0; way < ways_.size() && fit.bytes > limit_; ++way) {
        if (taken_[way]) continue;
        taken_[way] = true;
        MemoryFit tried = attempt(distance);
        taken_[way] = tried.bytes < fit.bytes;
        if (taken_[way]) fit = std::move(tried);
      }
    } while (fit.bytes > limit_ && fit.bytes < before);
    return fit;
  }

  std::string least_text(const MemoryFit& least) const {
    const bool sooner = least.storage_distance < options_.storage_distance;
    if (megabytes(least.bytes) == megabytes(least.bytes_before)) {
      return "and no less where activations are computed again instead of being kept";
    }
    return fmt::format("or {} where {}{}{}", megabytes(least.bytes),
                       least.operators.empty() ? "" : "activations are computed again instead of being kept",
                       sooner && !least.operators.empty() ? " and " : "",
                       sooner ? "storage is reused sooner" : "");
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
  std::vector<bool> taken_ = std::vector<bool>(ways_.size());  // by way
};

}  // namespace

MemoryFit fit_memory(Runtime& runtime, Graph& graph, std::size_t limit, const SessionOptions& options) {
  return Fitter(runtime, graph, limit, options).run();
}

}  // namespace purine
