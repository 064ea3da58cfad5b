// How the pieces that a pipeline's operators read are made of what others have produced.
#include <algorithm>
#include <utility>

#include "purine/core/error.h"
#include "purine/ops/concat.h"
#include "purine/ops/copy.h"
#include "purine/parallel/pipeliner.h"

namespace purine::parallel {

using Kind = Placement::Kind;

/// How an operator needs an input, along both axes, as of the whole batch.
std::pair<Placement, Placement> Pipeliner::needed(Operator op, int input) const {
  const Spec spec = needed_spec(plan_, op, input);
  return {spec[micro_batch_axis], spec[samples_axis]};
}

Pieces Pipeliner::input(Operator op, int input, int micro_batch) {
  const auto [micro, samples] = needed(op, input);
  if (micro.is_replicated()) micro_batch = whole;
  return value(op.input(input), micro, micro_batch, within(samples, micro, micro_batch),
               stages_.operators[op.index()]);
}

/// Adds the producer where it isn't there yet.
void Pipeliner::require(Tensor tensor, int micro_batch) {
  if (!tensor.has_producer()) return;
  const Operator op = tensor.producer();
  if (!is_divided(op.index())) micro_batch = whole;
  const std::size_t index = micro_batch == whole ? 0 : static_cast<std::size_t>(micro_batch);
  if (added_[op.index()][index]) return;
  if (is_divided(op.index()) && turn_ != nullptr && !op.contract().brings_samples()) {
    throw Error("pipeline",
                "needs " + tensor.path() + " of the whole batch, and micro-batches come one after the other",
                "data_parallel divides such a graph");
  }
  // What is added out of turn waits for nobody's.
  Turn* const turn = std::exchange(turn_, op.contract().brings_samples() ? nullptr : turn_);
  add_operator(op, micro_batch);
  turn_ = turn;
}

/// The form of a tensor at a stage; on the host, that at whichever stage has it. Null if it wasn't made yet.
const Pipeliner::Form* Pipeliner::find(Tensor tensor, const Placement& micro, int micro_batch,
                                       const Placement& samples, int stage) const {
  for (const Form& form : forms_[tensor.index()]) {
    if (form.micro_batch == micro_batch && (form.stage == stage || stage == on_host) &&
        is_same_micro(form.micro, micro) && same_placement(mesh_.stages.front(), 0, form.samples, samples)) {
      return &form;
    }
  }
  return nullptr;
}

Pieces Pipeliner::value(Tensor tensor, const Placement& micro, int micro_batch, const Placement& samples,
                        int stage) {
  if (const Form* form = find(tensor, micro, micro_batch, samples, stage)) return form->pieces;
  Pieces pieces = make(tensor, micro, micro_batch, samples, stage);
  forms_[tensor.index()].push_back({micro, micro_batch, samples, stage, pieces});
  return pieces;
}

Pieces Pipeliner::make(Tensor tensor, const Placement& micro, int micro_batch, const Placement& samples,
                       int stage) {
  if (!tensor.has_producer() && !from_.is_variable(tensor)) {
    return from_input(tensor, micro, micro_batch, samples, stage);
  }
  const int home = produced_[tensor.index()].home;
  if (home != on_host && stage != home) {
    return sent(tensor, value(tensor, micro, micro_batch, samples, home), stage);
  }
  const Placement& made = micro_of(tensor);
  if (!is_same_micro(micro, made)) {
    if (micro.is_replicated()) return gathered(tensor, samples, stage);
    return part_of_whole(tensor, micro, micro_batch, samples, stage);
  }
  return converted(tensor, as_produced(tensor, micro_batch, stage), info(tensor, micro, micro_batch),
                   within(samples_of(tensor), micro, micro_batch), samples, stage);
}

Pieces Pipeliner::from_input(Tensor tensor, const Placement& micro, int micro_batch, const Placement& samples,
                             int stage) {
  const auto root = std::find_if(roots_.begin(), roots_.end(),
                                 [&](const auto& entry) { return entry.first == tensor.index(); });
  Tensor part = root->second;
  if (micro.is_split()) {
    const Range range = elements(tensor, micro, micro_batch);
    if (range.size() == 0) return Pieces(static_cast<std::size_t>(mesh_.replicas()));
    const auto [entry, inserted] = host_parts_.try_emplace({tensor.index(), range.begin});
    if (inserted) {
      const auto place = to_.at(part.location());
      const auto scope = to_.reopen_scope("scatter/" + name_of(tensor));
      entry->second = range.size() == tensor.shape()[micro.dimension]
                          ? part
                          : ops::slice(part, micro.dimension, range.begin, range.end, "micro_batch");
    }
    part = entry->second;
  }
  return resharders_[static_cast<std::size_t>(stage)].scatter(part, {samples}, name_of(tensor));
}

/// As the producer leaves it, at its home, or what comes from the host at a stage.
Pieces Pipeliner::as_produced(Tensor tensor, int micro_batch, int stage) {
  const Produced& produced = produced_[tensor.index()];
  require(tensor, micro_batch);
  const std::size_t index =
      produced.micro_batches.size() == 1 || micro_batch == whole ? 0 : static_cast<std::size_t>(micro_batch);
  const Pieces& pieces = produced.micro_batches[index];
  return produced.home == on_host ? sent(tensor, pieces, stage) : pieces;
}

Pieces Pipeliner::sent(Tensor tensor, const Pieces& pieces, int stage) {
  const auto scope = to_.reopen_scope("send/" + name_of(tensor));
  Pieces sent(pieces.size());
  for (std::size_t d = 0; d < pieces.size(); ++d) {
    if (pieces[d].valid()) sent[d] = ops::copy(pieces[d], location(stage, static_cast<int>(d)));
  }
  return sent;
}

Pieces Pipeliner::converted(Tensor tensor, const Pieces& pieces, const TensorInfo& info,
                            const Placement& from, const Placement& to, int stage) {
  const Mesh& mesh = mesh_.stages[static_cast<std::size_t>(stage)];
  if (same_placement(mesh, 0, from, to)) return pieces;
  const bool of_gradient = tensor.has_producer() && is_gradient(tensor.producer());
  return resharders_[static_cast<std::size_t>(stage)].convert(pieces, info, {from}, {to}, name_of(tensor),
                                                              of_gradient);
}

/// A micro-batch's part of what isn't divided by micro-batches, or otherwise.
Pieces Pipeliner::part_of_whole(Tensor tensor, const Placement& micro, int micro_batch,
                                const Placement& samples, int stage) {
  if (micro.kind == Kind::varying) return value(tensor, replicated(), whole, samples, stage);
  const Placement through = splits_same_dimension(samples, micro) ? replicated() : samples;
  const Pieces all = value(tensor, replicated(), whole, through, stage);
  const Range range = elements(tensor, micro, micro_batch);
  Pieces parts(all.size());
  const auto scope = to_.reopen_scope("slice/" + name_of(tensor));
  for (std::size_t d = 0; d < all.size(); ++d) {
    if (!all[d].valid() || range.size() == 0) continue;
    const auto place = to_.at(all[d].location());
    parts[d] = ops::slice(all[d], micro.dimension, range.begin, range.end, "micro_batch");
  }
  return converted(tensor, parts, info(tensor, micro, micro_batch), through, samples, stage);
}

/// The whole batch's, of what is divided by micro-batches.
Pieces Pipeliner::gathered(Tensor tensor, const Placement& samples, int stage) {
  const Produced& produced = produced_[tensor.index()];
  const Placement& micro = micro_of(tensor);
  for (int m = 0; m < mesh_.micro_batches; ++m) require(tensor, m);
  if (!micro.is_split()) {
    PURINE_CHECK(produced.needs_sum);
    const Placement made = samples_of(tensor).kind == Kind::varying ? replicated() : samples_of(tensor);
    return converted(tensor, produced.sum, tensor.info(), made, samples, stage);
  }
  std::vector<std::vector<Tensor>> parts(static_cast<std::size_t>(mesh_.replicas()));
  Placement through = samples_of(tensor);
  if (splits_same_dimension(through, micro) || through.kind == Kind::varying) through = replicated();
  for (int m = 0; m < mesh_.micro_batches; ++m) {
    if (elements(tensor, micro, m).size() == 0) continue;
    const Pieces pieces = value(tensor, micro, m, through, stage);
    for (std::size_t d = 0; d < parts.size(); ++d) {
      if (pieces[d].valid()) parts[d].push_back(pieces[d]);
    }
  }
  Pieces all;
  const auto scope = to_.reopen_scope("gather/" + name_of(tensor));
  for (std::size_t d = 0; d < parts.size(); ++d) {
    all.emplace_back();
    if (parts[d].empty()) continue;
    const auto place = to_.at(location(stage, static_cast<int>(d)));
    all.back() = parts[d].size() == 1 ? parts[d].front() : ops::concat(parts[d], micro.dimension);
  }
  return converted(tensor, all, tensor.info(), through, samples, stage);
}

}  // namespace purine::parallel
