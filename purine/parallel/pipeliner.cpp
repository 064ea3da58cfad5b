#include "purine/parallel/pipeliner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "purine/core/error.h"
#include "purine/ops/after.h"
#include "purine/ops/copy.h"
#include "purine/ops/sum_n.h"
#include "purine/ops/unary.h"
#include "purine/parallel/operator_piece.h"

namespace purine::parallel {
namespace {

using Kind = Placement::Kind;

}  // namespace

Pipeliner::Pipeliner(Graph& from, Graph& to, const PipelineMesh& mesh, const Stages& stages, const Plan& plan,
                     const Reductions& reductions)
    : from_(from),
      to_(to),
      mesh_(mesh),
      stages_(stages),
      plan_(plan),
      consumers_(from),
      produced_(from.tensor_count()),
      forms_(from.tensor_count()),
      added_(from.operator_count()) {
  for (const Mesh& stage : mesh.stages) resharders_.emplace_back(to, stage, reductions);
  for (std::uint32_t i = 0; i < from.operator_count(); ++i) {
    const Operator op = from.op(i);
    const std::size_t times = is_divided(i) ? static_cast<std::size_t>(mesh.micro_batches) : 1;
    added_[i].assign(times, false);
    for (const Tensor output : op.outputs()) {
      Produced& produced = produced_[output.index()];
      produced.home = op.contract().brings_samples() ? on_host : stages.operators[i];
      produced.micro_batches.resize(times);
    }
  }
}

void Pipeliner::run() {
  for (const Variable variable : from_.variables()) add_variable(variable);
  for (const Tensor input : from_.inputs()) {
    const auto place = to_.at(host_of(location(0, 0)));
    roots_.emplace_back(input.index(), to_.input(input.path(), input.info()));
  }
  find_needed_sums();
  find_tasks();
  for (const Task& task : one_forward_one_backward(stages_.count, mesh_.micro_batches)) add_task(task);
  for (std::uint32_t i = 0; i < from_.operator_count(); ++i) {
    for (std::size_t m = 0; m < added_[i].size(); ++m) {
      if (!added_[i][m]) add_operator(from_.op(i), is_divided(i) ? static_cast<int>(m) : whole);
    }
  }
  for (const Variable variable : from_.variables()) set_next(variable);
  for (const Tensor tensor : from_.watched()) watch(tensor);
}

// ---- Places -----------------------------------------------------------------------------------------------

Location Pipeliner::location(int stage, int replica) const {
  return mesh_.stages[static_cast<std::size_t>(stage)].locations()[static_cast<std::size_t>(replica)];
}

/// `@3/`, or `@3.1/` for the second micro-batch.
std::string Pipeliner::prefix(int stage, int replica, int micro_batch) const {
  const std::vector<Location>& locations = mesh_.mesh.locations();
  const auto found = std::find(locations.begin(), locations.end(), location(stage, replica));
  const auto index = found - locations.begin();
  return micro_batch == whole ? fmt::format("@{}/", index) : fmt::format("@{}.{}/", index, micro_batch);
}

bool Pipeliner::is_same_micro(const Placement& a, const Placement& b) const {
  return same_placement(mesh_.divided, static_cast<int>(micro_batch_axis), a, b);
}

/// How a micro-batch's part lies along the samples' axis, which divides what the micro-batches leave.
Placement Pipeliner::within(Placement samples, const Placement& micro, int micro_batch) const {
  const bool both_vary = samples.kind == Kind::varying && micro.kind == Kind::varying;
  if (micro_batch == whole || !(both_vary || splits_same_dimension(samples, micro))) return samples;
  if (samples.units == 1) return samples;
  samples.units = unit_range(mesh_.divided, static_cast<int>(micro_batch_axis), micro, micro_batch).size();
  return samples;
}

/// A micro-batch's part of the dimension that is split.
Range Pipeliner::elements(Tensor tensor, const Placement& micro, int micro_batch) const {
  const std::int64_t each = tensor.shape()[micro.dimension] / micro.units;
  const Range units = unit_range(mesh_.divided, static_cast<int>(micro_batch_axis), micro, micro_batch);
  return {units.begin * each, units.end * each};
}

TensorInfo Pipeliner::info(Tensor tensor, const Placement& micro, int micro_batch) const {
  TensorInfo info = tensor.info();
  if (micro.is_split()) info.shape.set(micro.dimension, elements(tensor, micro, micro_batch).size());
  return info;
}

// ---- Preparation ------------------------------------------------------------------------------------------

void Pipeliner::add_variable(Variable variable) {
  const Spec& spec = plan_.tensors[variable.index()];
  const int stage = stages_.variables[variable.index()];
  const std::vector<Division> divisions = initial_divisions(mesh_.divided, variable, spec);
  const ContractPtr initial = variable.initial().shared_from_this();
  const VariableOptions options{variable.trainable(), variable.decays()};
  Pieces pieces;
  for (int d = 0; d < mesh_.replicas(); ++d) {
    const ContractPtr piece = operator_piece(mesh_.divided, d, divisions, initial, {});
    pieces.emplace_back();
    if (piece == nullptr) continue;
    const auto place = to_.at(location(stage, d));
    const bool plain = d == 0 && is_whole(spec);
    const std::string name = (plain ? std::string() : prefix(stage, d, whole)) + variable.path();
    pieces.back() = to_.variable(name, piece->infer({})[0], piece, options);
  }
  Produced& produced = produced_[variable.index()];
  produced.home = stage;
  produced.micro_batches = {std::move(pieces)};
}

void Pipeliner::find_needed_sums() {
  const auto need = [&](Tensor tensor) { produced_[tensor.index()].needs_sum = true; };
  for (std::uint32_t i = 0; i < from_.operator_count(); ++i) {
    const Operator op = from_.op(i);
    for (int k = 0; k < op.input_count(); ++k) {
      if (!is_same_micro(needed(op, k).first, micro_of(op.input(k)))) need(op.input(k));
    }
    for (const Tensor output : op.outputs()) {
      if (!same_spec(mesh_.divided, plan_.results[output.index()], plan_.tensors[output.index()]))
        need(output);
    }
  }
  for (const Variable variable : from_.variables()) {
    if (variable.has_next()) need(variable.next());
  }
  for (const Tensor tensor : from_.watched()) need(tensor);
}

void Pipeliner::find_tasks() {
  for (std::uint32_t i = 0; i < from_.operator_count(); ++i) {
    if (!is_divided(i) || stages_.phases[i] == Phase::update) continue;
    if (from_.op(i).contract().brings_samples()) continue;
    operators_[{stages_.phases[i], stages_.operators[i]}].push_back(i);
  }
}

// ---- Tasks ------------------------------------------------------------------------------------------------

void Pipeliner::add_task(const Task& task) {
  const int in_flight = micro_batches_in_flight(stages_.count, mesh_.micro_batches, task.stage);
  Turn turn{task, {}, {}};
  if (task.phase == Phase::forward) {
    bring_from_host(task.stage, task.micro_batch);
    bring_from_host(task.stage, task.micro_batch + 1);
    if (task.micro_batch >= in_flight) {
      turn.others = ends({Phase::backward, task.stage, task.micro_batch - in_flight});
    }
  } else if (task.phase == Phase::backward) {
    const int last = task.micro_batch + in_flight - 1;
    if (in_flight > 1 && last < mesh_.micro_batches) turn.others = ends({Phase::forward, task.stage, last});
  }
  turn_ = &turn;
  for (const std::uint32_t op : operators_[{task.phase, task.stage}]) {
    if (!added_[op][static_cast<std::size_t>(task.micro_batch)]) add_operator(from_.op(op), task.micro_batch);
  }
  turn_ = nullptr;
  send_on(task);
}

/// The results after which a task is over, by replica: of its operators that no other one of it reads.
std::vector<std::vector<Tensor>> Pipeliner::ends(const Task& task) {
  std::vector<std::vector<Tensor>> ends(static_cast<std::size_t>(mesh_.replicas()));
  const std::vector<std::uint32_t>& operators = operators_[{task.phase, task.stage}];
  for (const std::uint32_t i : operators) {
    const Operator op = from_.op(i);
    bool is_read = false;
    for (const Tensor output : op.outputs()) {
      for (const std::uint32_t reader : consumers_.of(output.index())) {
        is_read = is_read || std::binary_search(operators.begin(), operators.end(), reader);
      }
    }
    if (is_read) continue;
    const Pieces& pieces =
        produced_[op.output().index()].micro_batches[static_cast<std::size_t>(task.micro_batch)];
    for (std::size_t d = 0; d < ends.size(); ++d) {
      if (pieces[d].valid()) ends[d].push_back(pieces[d]);
    }
  }
  return ends;
}

/// What a task reads that arrives from elsewhere may be read when it is the task's turn: a forward's
/// activations, a backward's gradients.
Tensor Pipeliner::in_turn(Tensor piece, Tensor original, int replica) {
  if (turn_ == nullptr || turn_->others.empty()) return piece;
  const std::vector<Tensor>& others = turn_->others[static_cast<std::size_t>(replica)];
  if (others.empty() || from_.is_variable(original)) return piece;
  if (!original.has_producer() && turn_->task.phase == Phase::backward) return piece;
  if (original.has_producer()) {
    const std::uint32_t producer = original.producer().index();
    if (!is_divided(producer)) return piece;
    const bool is_gradient = stages_.phases[producer] != Phase::forward;
    if (turn_->task.phase == Phase::backward && !is_gradient) return piece;
    const bool from_host = original.producer().contract().brings_samples();
    const bool own = stages_.phases[producer] == turn_->task.phase &&
                     stages_.operators[producer] == turn_->task.stage && !from_host;
    if (own) return piece;
  }
  const auto [entry, inserted] = turn_->waiting.try_emplace(piece.index());
  if (inserted) {
    const auto place = to_.at(piece.location());
    const auto scope = to_.reopen_scope("order/" + name_of(original));
    entry->second = ops::after(piece, others);
  }
  return entry->second;
}

/// Graph inputs and data of a micro-batch, for a stage's forward.
void Pipeliner::bring_from_host(int stage, int micro_batch) {
  if (micro_batch >= mesh_.micro_batches) return;
  for (const std::uint32_t i : operators_[{Phase::forward, stage}]) {
    const Operator op = from_.op(i);
    for (int k = 0; k < op.input_count(); ++k) {
      const Tensor tensor = op.input(k);
      const bool from_host =
          tensor.has_producer() ? tensor.producer().contract().brings_samples() : !from_.is_variable(tensor);
      if (from_host) input(op, k, micro_batch);
    }
  }
}

/// Copies to other stages begin at once.
void Pipeliner::send_on(const Task& task) {
  for (const std::uint32_t i : operators_[{task.phase, task.stage}]) {
    for (const Tensor output : from_.op(i).outputs()) {
      for (const std::uint32_t reader : consumers_.of(output.index())) {
        if (!is_divided(reader) || stages_.operators[reader] == task.stage) continue;
        const Operator op = from_.op(reader);
        for (int k = 0; k < op.input_count(); ++k) {
          const bool same = op.input(k) == output && is_same_micro(needed(op, k).first, micro_of(output));
          if (same) input(op, k, task.micro_batch);
        }
      }
    }
  }
}

void Pipeliner::add_operator(Operator op, int micro_batch) {
  const std::vector<Division>& divisions = plan_.operators[op.index()];
  added_[op.index()][micro_batch == whole ? 0 : static_cast<std::size_t>(micro_batch)] = true;
  // Nobody waits for a turn that isn't its own.
  const bool in_task = turn_ != nullptr && micro_batch != whole && !op.contract().brings_samples();
  std::vector<Pieces> arguments;
  std::vector<TensorInfo> infos;
  for (int k = 0; k < op.input_count(); ++k) {
    infos.push_back(op.input(k).info());
    try {
      arguments.push_back(input(op, k, micro_batch));
    } catch (const Error& error) {
      throw error.at(op.path());
    }
  }
  const int stage = stages_.operators[op.index()];
  const bool at_host = op.contract().brings_samples();
  std::vector<Pieces> results(static_cast<std::size_t>(op.output_count()),
                              Pieces(static_cast<std::size_t>(mesh_.replicas())));
  for (int d = 0; d < mesh_.replicas(); ++d) {
    const int index = (micro_batch == whole ? 0 : micro_batch) * mesh_.replicas() + d;
    const ContractPtr piece = operator_piece(mesh_.divided, index, divisions, op.contract_pointer(), infos);
    if (piece == nullptr) continue;
    std::vector<Tensor> inputs;
    for (int k = 0; k < op.input_count(); ++k) {
      const Tensor argument = arguments[static_cast<std::size_t>(k)][static_cast<std::size_t>(d)];
      PURINE_CHECK(argument.valid());
      inputs.push_back(in_task ? in_turn(argument, op.input(k), d) : argument);
    }
    const auto place = to_.at(at_host ? host_of(location(stage, d)) : location(stage, d));
    const Operator made = to_.add(piece, inputs, prefix(stage, d, micro_batch) + op.path());
    for (std::size_t k = 0; k < results.size(); ++k) {
      results[k][static_cast<std::size_t>(d)] = made.output(static_cast<int>(k));
    }
  }
  for (int k = 0; k < op.output_count(); ++k) {
    Pieces& pieces = results[static_cast<std::size_t>(k)];
    if (!at_host) {
      complete_pieces(mesh_.stages[static_cast<std::size_t>(stage)], pieces, divisions[samples_axis], k, 0);
    }
    record(op.output(k), micro_batch, pieces);
  }
}

void Pipeliner::record(Tensor tensor, int micro_batch, const Pieces& pieces) {
  Produced& produced = produced_[tensor.index()];
  produced.micro_batches[micro_batch == whole ? 0 : static_cast<std::size_t>(micro_batch)] = pieces;
  const Kind kind = micro_of(tensor).kind;
  if (produced.needs_sum && (kind == Kind::partial || kind == Kind::varying)) {
    add_to_sum(tensor, micro_batch, pieces);
  }
}

/// Sums are added up as the micro-batches come, so that one of them is held at a time. What varies is
/// weighted by its share of the units.
void Pipeliner::add_to_sum(Tensor tensor, int micro_batch, Pieces pieces) {
  Produced& produced = produced_[tensor.index()];
  const Placement& micro = micro_of(tensor);
  const Placement samples = within(samples_of(tensor), micro, micro_batch);
  if (samples.kind == Kind::varying) {
    pieces = converted(tensor, pieces, tensor.info(), samples, replicated(), produced.home);
  }
  double share = 1;
  if (micro.kind == Kind::varying) {
    const Range units = unit_range(mesh_.divided, static_cast<int>(micro_batch_axis), micro, micro_batch);
    share = static_cast<double>(units.size()) / static_cast<double>(micro.units);
  }
  produced.sum.resize(pieces.size());
  const auto scope = to_.reopen_scope("accumulate/" + name_of(tensor));
  for (std::size_t d = 0; d < pieces.size(); ++d) {
    if (!pieces[d].valid()) continue;
    const auto place = to_.at(pieces[d].location());
    if (share != 1) pieces[d] = ops::scale(pieces[d], share, "share");
    Tensor& sum = produced.sum[d];
    sum = sum.valid() ? ops::sum_n({sum, pieces[d]}, "sum") : pieces[d];
  }
}

// ---- The end ----------------------------------------------------------------------------------------------

void Pipeliner::set_next(Variable variable) {
  if (!variable.has_next()) return;
  const Placement& samples = plan_.tensors[variable.index()][samples_axis];
  const int stage = stages_.variables[variable.index()];
  const Pieces next = value(variable.next(), replicated(), whole, samples, stage);
  const Pieces& current = produced_[variable.index()].micro_batches.front();
  for (std::size_t d = 0; d < current.size(); ++d) {
    if (current[d].valid()) to_.set_next(Variable(&to_, current[d].index()), next[d]);
  }
}

void Pipeliner::watch(Tensor tensor) {
  const auto known = std::find_if(roots_.begin(), roots_.end(),
                                  [&](const auto& entry) { return entry.first == tensor.index(); });
  if (known == roots_.end()) {
    const int home = produced_[tensor.index()].home;
    const int stage = home == on_host ? 0 : home;
    Placement samples = samples_of(tensor);
    if (splits_same_dimension(samples, micro_of(tensor)) || samples.kind == Kind::varying) {
      samples = replicated();
    }
    Pieces pieces = samples.kind == Kind::partial && !is_same_micro(micro_of(tensor), replicated())
                        ? produced_[tensor.index()].sum
                        : value(tensor, replicated(), whole, samples, stage);
    roots_.emplace_back(tensor.index(), resharders_[static_cast<std::size_t>(stage)].gather(
                                            std::move(pieces), tensor.info(), {samples}, name_of(tensor)));
    to_.watch(roots_.back().second);
    return;
  }
  to_.watch(known->second);
}

std::vector<std::vector<Version>> Pipeliner::versions() {
  std::vector<std::vector<Version>> versions(from_.tensor_count());
  for (std::uint32_t t = 0; t < from_.tensor_count(); ++t) {
    const Tensor tensor = from_.tensor(t);
    if (!tensor.has_producer() && !from_.is_variable(tensor)) continue;
    const Spec& spec = plan_.tensors[t];
    const Placement& micro = spec[micro_batch_axis];
    const int home = produced_[t].home;
    const auto add = [&](const Placement& of_micro, const Placement& of_samples) {
      Version version{{of_micro, of_samples}, {}};
      for (int m = 0; m < mesh_.micro_batches; ++m) {
        const int micro_batch = of_micro.is_replicated() ? whole : m;
        const Placement samples = within(of_samples, of_micro, micro_batch);
        const Form* form = find(tensor, of_micro, micro_batch, samples, home);
        const Pieces pieces = form != nullptr   ? form->pieces
                              : home == on_host ? Pieces(static_cast<std::size_t>(mesh_.replicas()))
                                                : value(tensor, of_micro, micro_batch, samples, home);
        for (const Tensor piece : pieces) version.pieces.push_back(piece.valid() ? piece.index() : no_piece);
      }
      versions[t].push_back(std::move(version));
    };
    add(micro, spec[samples_axis]);
    if (!is_whole(spec) && find(tensor, replicated(), whole, replicated(), home) != nullptr) {
      add(replicated(), replicated());
    }
  }
  return versions;
}

}  // namespace purine::parallel
