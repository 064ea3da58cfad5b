// Making the graph of a pipeline, once it is known what runs where and in which order.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/parallel/partitioned_data.h"
#include "purine/parallel/plan.h"
#include "purine/parallel/reshard.h"
#include "purine/parallel/stages.h"

namespace purine::parallel {

/// The axes of what a pipeline divides by: micro-batches, and within each of them the samples' axis.
inline constexpr std::size_t micro_batch_axis = 0;
inline constexpr std::size_t samples_axis = 1;

/// True if both divide one dimension of a tensor.
inline bool splits_same_dimension(const Placement& a, const Placement& b) {
  return a.is_split() && b.is_split() && a.dimension == b.dimension;
}

/// Where the stages are.
struct PipelineMesh {
  const Mesh& mesh;          ///< the user's
  std::vector<Mesh> stages;  ///< by stage: its locations, along the samples' axis alone
  Mesh divided;              ///< micro-batches and samples, at locations that don't matter
  int micro_batches = 0;

  int replicas() const { return stages.front().size(); }
};

/// Adds to an empty graph what a graph becomes as a pipeline.
///
/// A tensor is produced as its operator leaves it: once, or once a micro-batch, and each time by pieces along
/// the samples' axis at the producer's stage. Whoever reads it otherwise gets it by way of `value`, which
/// makes each form of it once: slices, concatenations and conversions at the producer's stage, then copies to
/// the reader's.
///
/// Operators are added in the order of the schedule, so that an order of the new graph's operators by their
/// numbers, which freezing plans memory by, is the one in which the stages work.
class Pipeliner {
 public:
  Pipeliner(Graph& from, Graph& to, const PipelineMesh& mesh, const Stages& stages, const Plan& plan,
            const Reductions& reductions);

  void run();
  /// All tensors' pieces, by location of the divided mesh; after run().
  std::vector<std::vector<Version>> versions();
  std::vector<std::pair<std::uint32_t, Tensor>>& roots() { return roots_; }

 private:
  static constexpr int whole = -1;    // instead of a micro-batch: all of them
  static constexpr int on_host = -1;  // instead of a stage: the hosts of the first one

  /// A tensor, or a micro-batch's part of it, in one form at one stage. Pieces by replica.
  struct Form {
    Placement micro;
    int micro_batch = whole;
    Placement samples;
    int stage = 0;
    Pieces pieces;
  };
  /// What the producer has made so far.
  struct Produced {
    int home = 0;                       // stage
    std::vector<Pieces> micro_batches;  // one if it isn't divided by them
    Pieces sum;                         // of those so far, where that is what is needed of it
    bool needs_sum = false;
  };
  /// What operators of a task must come after, by replica.
  struct Turn {
    Task task;
    std::vector<std::vector<Tensor>> others;
    std::map<std::uint32_t, Tensor> waiting;  // by the number of what arrives: what may be read
  };

  const Placement& micro_of(Tensor tensor) const { return plan_.results[tensor.index()][micro_batch_axis]; }
  const Placement& samples_of(Tensor tensor) const { return plan_.results[tensor.index()][samples_axis]; }
  bool is_divided(std::uint32_t op) const { return plan_.operators[op][micro_batch_axis].divided; }
  bool is_same_micro(const Placement& a, const Placement& b) const;
  Placement within(Placement samples, const Placement& micro, int micro_batch) const;
  Range elements(Tensor tensor, const Placement& micro, int micro_batch) const;
  TensorInfo info(Tensor tensor, const Placement& micro, int micro_batch) const;
  Location location(int stage, int replica) const;
  std::string prefix(int stage, int replica, int micro_batch) const;

  void add_variable(Variable variable);
  void find_needed_sums();
  void find_tasks();
  void add_task(const Task& task);
  void add_operator(Operator op, int micro_batch);
  void record(Tensor tensor, int micro_batch, const Pieces& pieces);
  void add_to_sum(Tensor tensor, int micro_batch, Pieces pieces);
  void bring_from_host(int stage, int micro_batch);
  void send_on(const Task& task);
  std::vector<std::vector<Tensor>> ends(const Task& task);
  Tensor in_turn(Tensor piece, Tensor original, int replica);

  std::pair<Placement, Placement> needed(Operator op, int input) const;
  Pieces input(Operator op, int input, int micro_batch);
  void require(Tensor tensor, int micro_batch);
  const Form* find(Tensor tensor, const Placement& micro, int micro_batch, const Placement& samples,
                   int stage) const;
  Pieces value(Tensor tensor, const Placement& micro, int micro_batch, const Placement& samples, int stage);
  Pieces make(Tensor tensor, const Placement& micro, int micro_batch, const Placement& samples, int stage);
  Pieces from_input(Tensor tensor, const Placement& micro, int micro_batch, const Placement& samples,
                    int stage);
  Pieces as_produced(Tensor tensor, int micro_batch, int stage);
  Pieces part_of_whole(Tensor tensor, const Placement& micro, int micro_batch, const Placement& samples,
                       int stage);
  Pieces gathered(Tensor tensor, const Placement& samples, int stage);
  Pieces sent(Tensor tensor, const Pieces& pieces, int stage);
  Pieces converted(Tensor tensor, const Pieces& pieces, const TensorInfo& info, const Placement& from,
                   const Placement& to, int stage);
  void set_next(Variable variable);
  void watch(Tensor tensor);

  Graph& from_;
  Graph& to_;
  const PipelineMesh& mesh_;
  const Stages& stages_;
  const Plan& plan_;
  Consumers consumers_;
  std::deque<Resharder> resharders_;                                       // by stage
  std::vector<Produced> produced_;                                         // by tensor
  std::vector<std::vector<Form>> forms_;                                   // by tensor
  std::map<std::pair<std::uint32_t, std::int64_t>, Tensor> host_parts_;    // of inputs, by the first element
  std::vector<std::vector<bool>> added_;                                   // by operator, by micro-batch
  std::map<std::pair<Phase, int>, std::vector<std::uint32_t>> operators_;  // of a task, by phase and stage
  Turn* turn_ = nullptr;
  std::vector<std::pair<std::uint32_t, Tensor>> roots_;
};

}  // namespace purine::parallel
