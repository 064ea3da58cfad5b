#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "purine/ops/assign.h"
#include "purine/ops/copy.h"
#include "purine/program/fusion.h"
#include "purine/program/half_copy.h"
#include "purine/program/host.h"
#include "purine/program/lowered.h"
#include "purine/program/memory_plan.h"
#include "purine/program/ranges.h"

namespace purine::program {
namespace {

/// What is staged on its way, or can arrive early, has two versions.
constexpr std::uint32_t two_slots = 2;

class Lowerer {
 public:
  Lowerer(const WholeGraph& whole, const LowerOptions& options)
      : whole_(whole),
        graph_(whole.graph()),
        rank_(options.rank),
        fusions_(options.fuse ? &whole.fusions() : nullptr),
        mapped_(graph_.tensor_count(), none) {}

  Lowered run() {
    const std::vector<Variable>& variables = whole_.variables();
    result_.variables.resize(variables.size());
    for (const std::uint32_t op : whole_.operators_of(rank_)) add_own_part(graph_.op(op));
    for (const Tensor tensor : graph_.watched()) {
      if (tensor.location().rank != rank_) continue;
      const std::uint32_t place = host_place(tensor.location());
      add(added(std::make_shared<HostRead>(), {at(map(tensor), place)}, tensor.path() + "/host_read", place));
    }
    result_.find_consumers();
    for (const std::uint32_t i : whole_.variables_of(rank_)) {
      if (variables[i].has_next()) set_next(i, variables[i]);
    }
    result_.find_consumers();
    return std::move(result_);
  }

 private:
  std::uint32_t add(LoweredOperator op) {
    result_.operators.push_back(std::move(op));
    return static_cast<std::uint32_t>(result_.operators.size() - 1);
  }

  static LoweredOperator added(ContractPtr contract, std::vector<std::uint32_t> inputs, std::string path,
                               std::uint32_t place) {
    LoweredOperator op;
    op.contract = std::move(contract);
    op.inputs = std::move(inputs);
    op.added_path = std::move(path);
    op.place = place;
    return op;
  }

  /// Adds an operator with one output, and gives the output.
  std::uint32_t add_with_output(LoweredOperator op, const TensorInfo& info, std::uint32_t origin) {
    const std::uint32_t index = add(std::move(op));
    const std::uint32_t output = add_tensor(info, index, origin);
    result_.operators[index].outputs = {output};
    return output;
  }

  std::uint32_t add_tensor(const TensorInfo& info, std::uint32_t producer, std::uint32_t origin) {
    LoweredTensor tensor;
    tensor.info = info;
    tensor.producer = producer;
    tensor.origin = origin;
    if (producer != none) tensor.place = result_.operators[producer].place;
    result_.tensors.push_back(std::move(tensor));
    return static_cast<std::uint32_t>(result_.tensors.size() - 1);
  }

  /// The host's own memory, where it reads and writes values: a location's CPU.
  std::uint32_t host_place(Location location) {
    if (location.kind != DeviceKind::cpu) location = {location.rank, DeviceKind::cpu, 0};
    return result_.place_of(location);
  }

  /// A tensor at a place, copied there if it lies elsewhere.
  std::uint32_t at(std::uint32_t tensor, std::uint32_t place) {
    const LoweredTensor source = result_.tensors[tensor];
    if (source.place == place) return tensor;
    const std::string path = graph_.tensor(source.origin).path() + "/copy_to_" + result_.places[place].text();
    return add_with_output(added(std::make_shared<ops::Copy>(), {tensor}, path, place), source.info,
                           source.origin);
  }

  std::uint32_t map(Tensor tensor) {
    std::uint32_t& mapped = mapped_[tensor.index()];
    if (mapped != none) return mapped;
    PURINE_CHECK(!tensor.has_producer());
    const std::uint32_t place = result_.place_of(tensor.location());
    if (graph_.is_variable(tensor)) {
      mapped = add_tensor(tensor.info(), none, tensor.index());
      const std::uint32_t index = whole_.variable_of(tensor);
      result_.tensors[mapped].place = place;
      result_.tensors[mapped].variable = index;
      result_.variables[index].tensor = mapped;
      return mapped;
    }
    const std::uint32_t value =
        add_with_output(added(std::make_shared<HostInput>(tensor.info()), {}, tensor.path() + "/host_input",
                              host_place(tensor.location())),
                        tensor.info(), tensor.index());
    mapped = at(value, place);
    return mapped;
  }

  /// What runs in place of an operator of the graph.
  std::span<const FusedOperator> in_place_of(Operator op) const {
    if (fusions_ == nullptr) return {};
    if (const auto found = fusions_->fused.find(op.index()); found != fusions_->fused.end()) {
      return {&found->second, 1};
    }
    const auto found = fusions_->swapped.find(op.index());
    return found != fusions_->swapped.end() ? found->second : std::span<const FusedOperator>();
  }

  void add_own_part(Operator op) {
    const bool here = op.location().rank == rank_;
    const bool crosses = op.contract().crosses_locations();
    if (here && crosses && op.input(0).location().rank != rank_) {
      add_receive(op);
    } else if (here) {
      for (const FusedOperator& fused : in_place_of(op)) add_fused(fused, op.location());
      if (fusions_ == nullptr || !fusions_->absorbed[op.index()]) add_operator(op, map_all(op.inputs()));
    } else if (crosses && op.input(0).location().rank == rank_) {
      add_send(op);
    }
  }

  void add_send(Operator copy) {
    const Tensor source = copy.input(0);
    const std::uint32_t place = host_place(source.location());
    std::uint32_t tensor = map(source);
    const LoweredTensor& here = result_.tensors[tensor];
    if (here.place == place) {
      if (here.producer != none && !whole_.changes(source))
        result_.operators[here.producer].slots = two_slots;
    } else {
      const auto [staged, inserted] = staged_.try_emplace(tensor, none);
      if (inserted) {
        staged->second = at(tensor, place);
        result_.operators.back().slots = two_slots;
      }
      tensor = staged->second;
    }
    add_half(HalfCopy::Side::send, copy, copy.location().rank, {tensor}, place);
  }

  void add_receive(Operator copy) {
    const Tensor output = copy.output();
    const std::uint32_t place = host_place(copy.location());
    const bool staged = copy.location().kind != DeviceKind::cpu;
    const std::uint32_t half =
        add_half(HalfCopy::Side::receive, copy, copy.input(0).location().rank, {}, place);
    const std::uint32_t received = add_tensor(output.info(), half, output.index());
    result_.operators[half].outputs = {received};
    result_.operators[half].slots = staged || !whole_.changes(output) ? two_slots : 1;
    if (staged) {
      add_operator(copy, {received});
    } else {
      mapped_[output.index()] = received;
    }
  }

  std::uint32_t add_half(HalfCopy::Side side, Operator copy, std::int32_t peer,
                         std::vector<std::uint32_t> inputs, std::uint32_t place) {
    auto contract = std::make_shared<HalfCopy>(side, copy.output().info(), peer, copy.index());
    std::string path = copy.path() + "/" + std::string(contract->type());
    const std::uint32_t half = add(added(std::move(contract), std::move(inputs), std::move(path), place));
    halves_.push_back(half);
    return half;
  }

  std::vector<std::uint32_t> map_all(const std::vector<Tensor>& tensors) {
    std::vector<std::uint32_t> result;
    for (const Tensor tensor : tensors) result.push_back(map(tensor));
    return result;
  }

  void add_operator(Operator op, std::vector<std::uint32_t> inputs) {
    LoweredOperator lowered;
    lowered.contract = op.contract_pointer();
    lowered.origin = op.index();
    lowered.place = result_.place_of(op.location());
    lowered.inputs = std::move(inputs);
    add_with_outputs(std::move(lowered), op.outputs());
  }

  void add_fused(const FusedOperator& fused, Location location) {
    add_with_outputs(added(fused.contract, map_all(fused.inputs), fused.path, result_.place_of(location)),
                     fused.outputs);
  }

  void add_with_outputs(LoweredOperator op, const std::vector<Tensor>& outputs) {
    const std::uint32_t index = add(std::move(op));
    for (const Tensor output : outputs) {
      mapped_[output.index()] = add_tensor(output.info(), index, output.index());
      result_.operators[index].outputs.push_back(mapped_[output.index()]);
    }
  }

  void set_next(std::uint32_t index, Variable variable) {
    const std::uint32_t current = map(variable);
    std::uint32_t next = map(variable.next());
    LoweredVariable& lowered = result_.variables[index];
    if (!can_update_in_place(current, next) && !can_update_in_parts(current, next, lowered.parts)) {
      if (result_.tensors[next].producer == none) {
        // The next value is another variable: its value is taken aside first, so that two variables can swap.
        next = add_assign(next, next, variable.path() + "/take");
      }
      next = add_assign(current, next, variable.path() + "/assign");
    }
    lowered.next = next;
  }

  std::uint32_t add_assign(std::uint32_t variable, std::uint32_t value, std::string path) {
    const LoweredTensor target = result_.tensors[variable];
    return add_with_output(
        added(std::make_shared<ops::Assign>(), {variable, value}, std::move(path), target.place), target.info,
        target.origin);
  }

  /// The producer of the next value may overwrite the variable iff its contract allows it, no other variable
  /// takes the same tensor as its next value, and no reader of the old value needs something that the
  /// producer makes (it would have to run both before and after it).
  bool can_update_in_place(std::uint32_t current, std::uint32_t next) {
    const std::uint32_t producer = result_.tensors[next].producer;
    if (producer == none || taken_.contains(next)) return false;
    const LoweredOperator& op = result_.operators[producer];
    bool allowed = false;
    for (const Sharing& sharing : op.contract->sharing()) {
      allowed = allowed || (sharing.kind == Sharing::Kind::overwrite &&
                            op.inputs[static_cast<std::size_t>(sharing.input)] == current &&
                            op.outputs[static_cast<std::size_t>(sharing.output)] == next);
    }
    if (!allowed || std::count(op.inputs.begin(), op.inputs.end(), current) != 1) return false;
    if (reads_depend_on(current, producer)) return false;
    taken_.insert(next);
    updates_of_[current] = {producer};
    return true;
  }

  /// The next value, or each of the parts that it concatenates, may be written into the variable's storage
  /// iff it is received, or overwrites a slice of the variable that lies there, and the same holds of readers
  /// and of other variables as for an update of the whole. Then gives the parts.
  bool can_update_in_parts(std::uint32_t current, std::uint32_t next, std::vector<std::uint32_t>& parts) {
    const std::uint32_t producer = result_.tensors[next].producer;
    if (producer == none || taken_.contains(next)) return false;
    std::vector<ByteRange> ranges = byte_ranges(result_, result_.operators[producer]);
    if (ranges.empty()) ranges = {{next, next, 0}};
    if (ranges.front().whole != next) return false;  // a slice
    const std::vector<std::uint32_t>& readers = result_.tensors[current].consumers;
    std::vector<std::uint32_t> found;
    std::vector<std::uint32_t> updates;
    for (const ByteRange& range : ranges) {
      const std::uint32_t update = result_.tensors[range.part].producer;
      const bool is_new = std::find(found.begin(), found.end(), range.part) == found.end();
      if (update == none || !is_new || taken_.contains(range.part) || !comes_in_place(current, range) ||
          std::binary_search(readers.begin(), readers.end(), update) || reads_depend_on(current, update)) {
        return false;
      }
      found.push_back(range.part);
      updates.push_back(update);
    }
    taken_.insert(next);
    taken_.insert(found.begin(), found.end());
    updates_of_[current] = std::move(updates);
    parts = std::move(found);
    return true;
  }

  bool comes_in_place(std::uint32_t current, const ByteRange& range) const {
    const LoweredTensor& part = result_.tensors[range.part];
    if (part.place != result_.tensors[current].place || range.offset % storage_alignment != 0 ||
        part.info.bytes() == 0) {
      return false;
    }
    const LoweredOperator& op = result_.operators[part.producer];
    if (as_half_copy(*op.contract) != nullptr) return op.slots == 1;
    return overwritten_slice(result_, current, range) != none;
  }

  /// Whether some reader of `tensor` but the producer comes after the producer: through values, because it
  /// comes after the update of another variable that something after the producer reads, or through the order
  /// of what is sent and received.
  bool reads_depend_on(std::uint32_t tensor, std::uint32_t producer) {
    const auto& readers = result_.tensors[tensor].consumers;
    std::vector<std::uint32_t> pending = {producer};
    std::unordered_set<std::uint32_t> seen;
    while (!pending.empty()) {
      const std::uint32_t op = pending.back();
      pending.pop_back();
      if (op != producer && std::binary_search(readers.begin(), readers.end(), op)) return true;
      const auto visit = [&](std::uint32_t next) {
        if (seen.insert(next).second) pending.push_back(next);
      };
      for (const std::uint32_t output : result_.operators[op].outputs) {
        for (const std::uint32_t consumer : result_.tensors[output].consumers) visit(consumer);
      }
      for (const std::uint32_t input : result_.operators[op].inputs) {
        const auto updates = updates_of_.find(input);
        if (updates == updates_of_.end()) continue;
        for (const std::uint32_t update : updates->second) {
          if (update != op) visit(update);
        }
      }
      const auto half = std::lower_bound(halves_.begin(), halves_.end(), op);
      if (half != halves_.end() && *half == op && half + 1 != halves_.end()) visit(half[1]);
    }
    return false;
  }

  const WholeGraph& whole_;
  Graph& graph_;
  const std::int32_t rank_;
  const Fusions* const fusions_;  // null: operators run one by one
  Lowered result_;
  std::vector<std::uint32_t> mapped_;
  std::vector<std::uint32_t> halves_;                        // sends and receives, ascending
  std::unordered_map<std::uint32_t, std::uint32_t> staged_;  // on the host, what is sent from a device
  std::unordered_set<std::uint32_t> taken_;                  // next values computed in place
  // By the variable's current value.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> updates_of_;
};

}  // namespace

std::uint32_t Lowered::place_of(Location location) {
  const auto found = std::find(places.begin(), places.end(), location);
  const auto index = static_cast<std::uint32_t>(found - places.begin());
  if (found == places.end()) places.push_back(location);
  return index;
}

std::string Lowered::path(Graph& graph, std::uint32_t op) const {
  const LoweredOperator& record = operators[op];
  return record.origin == none ? record.added_path : graph.op(record.origin).path();
}

std::vector<TensorInfo> Lowered::infos(const std::vector<std::uint32_t>& tensors_of) const {
  std::vector<TensorInfo> result;
  for (const std::uint32_t tensor : tensors_of) result.push_back(tensors[tensor].info);
  return result;
}

void Lowered::find_consumers() {
  for (LoweredTensor& tensor : tensors) tensor.consumers.clear();
  for (std::uint32_t op = 0; op < operators.size(); ++op) {
    for (const std::uint32_t input : operators[op].inputs) {
      std::vector<std::uint32_t>& consumers = tensors[input].consumers;
      if (consumers.empty() || consumers.back() != op) consumers.push_back(op);
    }
  }
}

std::vector<std::uint32_t> Lowered::updates(const LoweredVariable& variable) const {
  if (variable.parts.empty()) return {tensors[variable.next].producer};
  std::vector<std::uint32_t> result;
  for (const std::uint32_t part : variable.parts) result.push_back(tensors[part].producer);
  return result;
}

Lowered lower(const WholeGraph& whole, const LowerOptions& options) {
  return Lowerer(whole, options).run();
}

namespace {

/// Whether an output is made in the bytes of an input, or is a single number.
bool takes_no_memory(const Lowered& lowered, const LoweredOperator& op, std::size_t output) {
  if (lowered.tensors[op.outputs[output]].info.shape.elements() == 1) return true;
  const std::vector<Sharing> shared = op.contract->sharing();
  return std::any_of(shared.begin(), shared.end(), [&](const Sharing& sharing) {
    return static_cast<std::size_t>(sharing.output) == output;
  });
}

/// Marks what leads to marked operators alone and takes no memory of its own, as what stands between a
/// gradient and its variable's update.
void mark_ways_there(const Lowered& lowered, std::vector<bool>& marked) {
  for (std::size_t i = lowered.operators.size(); i-- > 0;) {
    const LoweredOperator& op = lowered.operators[i];
    bool leads_there = !op.outputs.empty();
    for (std::size_t output = 0; output < op.outputs.size(); ++output) {
      const std::vector<std::uint32_t>& consumers = lowered.tensors[op.outputs[output]].consumers;
      leads_there = leads_there && !consumers.empty() && takes_no_memory(lowered, op, output) &&
                    std::all_of(consumers.begin(), consumers.end(),
                                [&](std::uint32_t consumer) { return marked[consumer]; });
    }
    if (leads_there && as_half_copy(*op.contract) == nullptr) marked[i] = true;
  }
}

}  // namespace

std::vector<std::uint32_t> serial_order(const Lowered& lowered) {
  const std::size_t count = lowered.operators.size();
  std::vector<std::uint32_t> waiting(count, 0);
  std::vector<std::vector<std::uint32_t>> after(count);  // what else waits for an operator
  std::vector<bool> early(count, false);
  for (const LoweredVariable& variable : lowered.variables) {
    if (variable.next == none) continue;
    for (const std::uint32_t update : lowered.updates(variable)) {
      early[update] = as_half_copy(*lowered.operators[update].contract) == nullptr;
      for (const std::uint32_t reader : lowered.tensors[variable.tensor].consumers) {
        if (reader == update) continue;
        after[reader].push_back(update);
        ++waiting[update];
      }
    }
  }
  std::uint32_t last_half = none;
  for (std::uint32_t op = 0; op < count; ++op) {
    if (lowered.operators[op].outputs.empty()) early[op] = true;
    if (as_half_copy(*lowered.operators[op].contract) == nullptr) continue;
    if (last_half != none) {
      after[last_half].push_back(op);
      ++waiting[op];
    }
    last_half = op;
  }
  mark_ways_there(lowered, early);
  for (const LoweredTensor& tensor : lowered.tensors) {
    if (tensor.producer == none) continue;
    for (const std::uint32_t consumer : tensor.consumers) ++waiting[consumer];
  }

  using Key = std::pair<bool, std::uint32_t>;  // the early ones first, then by index
  std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
  for (std::uint32_t op = 0; op < count; ++op) {
    if (waiting[op] == 0) ready.emplace(!early[op], op);
  }
  std::vector<std::uint32_t> order;
  order.reserve(count);
  const auto release = [&](std::uint32_t op) {
    if (--waiting[op] == 0) ready.emplace(!early[op], op);
  };
  while (!ready.empty()) {
    const std::uint32_t op = ready.top().second;
    ready.pop();
    order.push_back(op);
    for (const std::uint32_t output : lowered.operators[op].outputs) {
      for (const std::uint32_t consumer : lowered.tensors[output].consumers) release(consumer);
    }
    for (const std::uint32_t next : after[op]) release(next);
  }
  PURINE_CHECK_EQUAL(order.size(), count);
  return order;
}

}  // namespace purine::program
