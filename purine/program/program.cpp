#include "purine/program/program.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "purine/core/error.h"
#include "purine/core/random.h"
#include "purine/program/estimate.h"
#include "purine/program/half_copy.h"
#include "purine/program/host.h"
#include "purine/program/lowered.h"

namespace purine {

using program::Lowered;
using program::LoweredOperator;
using program::LoweredTensor;
using program::MemoryPlan;
using program::none;
using program::StorageOrder;
using program::TensorStorage;

Program::Program(Graph& graph, const FreezeOptions& options)
    : graph_(graph), poison_freed_(options.poison_freed) {
  std::optional<program::WholeGraph> own;
  const program::WholeGraph& whole = options.whole != nullptr ? *options.whole : own.emplace(graph);
  PURINE_CHECK(&whole.graph() == &graph);
  Lowered lowered = program::lower(whole, {options.rank, options.fuse});
  program::assign_layouts(graph, lowered, options.channels_last);
  const MemoryPlan plan = program::plan_memory(lowered, program::serial_order(lowered), options.memory);
  store(lowered, plan);
  build_marked_graph(lowered, plan, whole, options);
  kernels_.resize(operators_.size());
  if (options.bind_kernels) bind_kernels(options);
}

Program::~Program() = default;

void Program::store(const Lowered& lowered, const MemoryPlan& plan) {
  places_ = lowered.places;
  PURINE_CHECK(places_.size() < 0xffff);
  memory_.resize(places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    memory_[i].slots = plan.arenas[i].slot_bytes;
    memory_[i].arena = plan.arenas[i].bytes - plan.arenas[i].slot_bytes;
  }
  tensors_.reserve(lowered.tensors.size());
  for (std::size_t i = 0; i < lowered.tensors.size(); ++i) {
    const TensorStorage& storage = plan.tensors[i];
    const LoweredTensor& tensor = lowered.tensors[i];
    TensorRecord record;
    record.offset = storage.offset;
    record.stride = static_cast<std::uint32_t>(storage.stride / program::storage_alignment);
    record.slots = static_cast<std::uint8_t>(storage.slots);
    record.is_variable = storage.kind == TensorStorage::Kind::variable;
    if (record.is_variable)
      record.stride = static_cast<std::uint32_t>(storage.begin / program::storage_alignment);
    record.place = static_cast<std::uint16_t>(tensor.place);
    record.origin = tensor.origin;
    tensors_.push_back(record);
    memory_[tensor.place].tensors += tensor.info.bytes() * storage.slots;
    if (tensor.variable != none) memory_[tensor.place].variables += tensor.info.bytes();
  }
  operators_.reserve(lowered.operators.size());
  for (const LoweredOperator& op : lowered.operators) {
    OperatorRecord record;
    record.is_view = plan.elided[operators_.size()];
    record.origin = op.origin;
    if (op.origin == none) {
      record.origin = added_mark | static_cast<std::uint32_t>(added_.size());
      added_.push_back({op.contract, op.added_path});
    }
    record.first_argument = static_cast<std::uint32_t>(arguments_.size());
    record.input_count = static_cast<std::uint16_t>(op.inputs.size());
    record.output_count = static_cast<std::uint16_t>(op.outputs.size());
    record.place = static_cast<std::uint16_t>(op.place);
    const auto add_arguments = [&](const std::vector<std::uint32_t>& tensors,
                                   const std::vector<Layout>& layouts) {
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        arguments_.push_back(tensors[i] * 2 + (layouts[i] == Layout::channels_last ? 1 : 0));
      }
    };
    add_arguments(op.inputs, op.input_layouts);
    add_arguments(op.outputs, op.output_layouts);
    operators_.push_back(record);
  }
}

std::uint32_t Program::lane_of(std::uint32_t op, std::int32_t rank) {
  const Location here = location(op);
  LaneUse use{here, LaneKind::compute};
  if (is_exchange(op)) {
    use = {{rank, DeviceKind::cpu, 0}, LaneKind::network};
  } else if (contract(op).crosses_locations()) {
    const Location source = places_[tensors_[inputs(op)[0] / 2].place];
    const bool to_host = here.kind == DeviceKind::cpu;
    const bool from_host = source.kind == DeviceKind::cpu;
    if (!to_host || !from_host) {
      use = {to_host ? source : here, to_host     ? LaneKind::copy_out
                                      : from_host ? LaneKind::copy_in
                                                  : LaneKind::peer};
    }
  }
  const auto found = std::find(lanes_.begin(), lanes_.end(), use);
  const auto lane = static_cast<std::uint32_t>(found - lanes_.begin());
  if (found == lanes_.end()) lanes_.push_back(use);
  return lane;
}

void Program::build_marked_graph(const Lowered& lowered, const MemoryPlan& plan,
                                 const program::WholeGraph& whole, const FreezeOptions& options) {
  MarkedGraphBuilder builder(operator_count());
  if (!options.priorities) builder.set_first_come_first_served();
  std::vector<std::uint32_t> lane(operator_count());
  for (std::uint32_t op = 0; op < operator_count(); ++op) {
    lane[op] = lane_of(op, options.rank);
    builder.set_lane(op, lane[op]);
    if (is_exchange(op)) {
      builder.set_cost(op,
                       program::estimate_message_seconds(cost(op).bytes, options.network_bytes_per_second));
    } else {
      builder.set_cost(op, is_view(op) ? 0 : program::estimate_seconds(cost(op)));
    }
  }
  if (lanes_.empty()) lanes_.push_back({{options.rank, DeviceKind::cpu, 0}, LaneKind::compute});
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    const bool workers = lanes_[i].location.kind == DeviceKind::cpu && lanes_[i].kind == LaneKind::compute;
    const bool both_ways = lanes_[i].kind == LaneKind::network;
    builder.set_parallelism(i, workers ? options.parallelism : both_ways ? 2 : 1);
  }
  set_sends(builder, whole, options.network_bytes_per_second);
  // What is on one in-order queue needs no token but the order of issue; queues of one kind of device wait
  // for each other's events; all else waits until the work is done.
  const auto add_edge = [&](std::uint32_t from, std::uint32_t to, std::uint32_t tokens, EdgeKind kind) {
    const DeviceKind from_kind = lanes_[lane[from]].location.kind;
    const DeviceKind to_kind = lanes_[lane[to]].location.kind;
    EdgeTiming timing = EdgeTiming::done;
    if (from_kind == to_kind && from_kind != DeviceKind::cpu) {
      timing = lane[from] == lane[to] ? EdgeTiming::issued : EdgeTiming::event;
    }
    builder.add_edge({from, to, tokens, kind, timing});
  };
  for (const LoweredTensor& tensor : lowered.tensors) {
    if (tensor.producer == none) continue;
    for (const std::uint32_t consumer : tensor.consumers)
      add_edge(tensor.producer, consumer, 0, EdgeKind::value);
  }
  for (const program::LoweredVariable& variable : lowered.variables) {
    if (variable.tensor == none || variable.next == none) continue;
    const std::uint32_t update = lowered.tensors[variable.next].producer;
    for (const std::uint32_t reader : lowered.tensors[variable.tensor].consumers) {
      add_edge(update, reader, 1, EdgeKind::value);
    }
  }
  for (const StorageOrder& order : plan.orders) {
    add_edge(order.before, order.after, order.delay, EdgeKind::order);
  }
  marked_graph_ = std::make_unique<MarkedGraph>(builder.build([this](std::uint32_t op) { return path(op); }));
}

// Sends share what the rank can send, and what is behind one runs at another rank.
void Program::set_sends(MarkedGraphBuilder& builder, const program::WholeGraph& whole,
                        double network_bytes_per_second) const {
  for (std::uint32_t op = 0; op < operator_count(); ++op) {
    const HalfCopy* half = as_half_copy(contract(op));
    if (half == nullptr || half->side() != HalfCopy::Side::send) continue;
    const program::Remaining& after =
        whole.remaining(network_bytes_per_second)[graph_.op(half->channel()).output().index()];
    builder.set_remaining(op, after.in_first, after.in_last);
    builder.set_on_line(op);
  }
}

void Program::bind_kernels(const FreezeOptions& options) {
  std::vector<std::exception_ptr> errors(operators_.size());
  std::atomic<std::uint32_t> next = 0;
  const auto bind = [&] {
    for (std::uint32_t op = next++; op < operator_count(); op = next++) {
      if (is_view(op) || is_transfer(op) || is_exchange(op)) continue;
      try {
        kernels_[op] = make_kernel_of(op, options);
      } catch (...) {
        errors[op] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < options.binding_threads; ++i) others.emplace_back(bind);
    bind();
  }
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
  for (std::uint32_t op = 0; op < operator_count(); ++op) {
    if (kernels_[op] == nullptr) continue;
    std::size_t& scratch = memory_[place(op)].scratch_per_worker;
    scratch = std::max(scratch, kernels_[op]->scratch_bytes());
  }
}

std::unique_ptr<Kernel> Program::make_kernel_of(std::uint32_t op, const FreezeOptions& options) const {
  const Contract& bound = contract(op);
  if (dynamic_cast<const HostInput*>(&bound) != nullptr) {
    return options.host_input(graph_.tensor(tensors_[outputs(op)[0] / 2].origin));
  }
  if (dynamic_cast<const HostRead*>(&bound) != nullptr) {
    return options.host_read(graph_.tensor(tensors_[inputs(op)[0] / 2].origin));
  }
  const std::string name = path(op);
  const auto registry = options.kernels.find(location(op).kind);
  if (registry == options.kernels.end()) {
    throw Error(bound.type(),
                "lies at " + location(op).text() + ", and there are no kernels for such a device")
        .at(name);
  }
  std::vector<TensorInfo> infos;
  std::vector<Layout> layouts;
  for (const std::span<const std::uint32_t> arguments : {inputs(op), outputs(op)}) {
    for (const std::uint32_t argument : arguments) {
      infos.push_back(info(argument));
      layouts.push_back(argument % 2 == 1 ? Layout::channels_last : Layout::plain);
    }
  }
  const std::size_t input_count = operators_[op].input_count;
  return registry->second->bind({bound, std::span<const TensorInfo>(infos).first(input_count),
                                 std::span<const TensorInfo>(infos).subspan(input_count),
                                 std::span<const Layout>(layouts).first(input_count),
                                 std::span<const Layout>(layouts).subspan(input_count), options.seed,
                                 hash_text(logical_path(name)), name});
}

const Contract& Program::contract(std::uint32_t op) const {
  const std::uint32_t origin = operators_[op].origin;
  if ((origin & added_mark) != 0) return *added_[origin & ~added_mark].contract;
  return graph_.op(origin).contract();
}

std::span<const std::uint32_t> Program::inputs(std::uint32_t op) const {
  return {arguments_.data() + operators_[op].first_argument, operators_[op].input_count};
}

std::span<const std::uint32_t> Program::outputs(std::uint32_t op) const {
  return {arguments_.data() + operators_[op].first_argument + operators_[op].input_count,
          operators_[op].output_count};
}

const TensorInfo& Program::info(std::uint32_t argument) const {
  return graph_.tensor(tensors_[argument / 2].origin).info();
}

std::string Program::path(std::uint32_t op) const {
  const std::uint32_t origin = operators_[op].origin;
  if ((origin & added_mark) != 0) return added_[origin & ~added_mark].path;
  return graph_.op(origin).path();
}

Cost Program::cost(std::uint32_t op) const {
  std::vector<TensorInfo> input_infos;
  std::vector<TensorInfo> output_infos;
  for (const std::uint32_t argument : inputs(op)) input_infos.push_back(info(argument));
  for (const std::uint32_t argument : outputs(op)) output_infos.push_back(info(argument));
  return contract(op).cost(input_infos, output_infos);
}

DType Program::dtype(std::uint32_t op) const {
  const std::span<const std::uint32_t> made = outputs(op);
  if (!made.empty()) return info(made[0]).dtype;
  return inputs(op).empty() ? DType::f32 : info(inputs(op)[0]).dtype;
}

std::string Program::shapes(std::uint32_t op) const {
  std::string text;
  const auto list = [&](std::span<const std::uint32_t> arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (i > 0) text += ", ";
      text += info(arguments[i]).text();
      if (arguments[i] % 2 == 1) text += " channels_last";
    }
  };
  list(inputs(op));
  text += operators_[op].input_count == 0 ? "-> " : " -> ";
  list(outputs(op));
  return text;
}

std::string_view Program::algorithm(std::uint32_t op) const {
  return kernels_[op] == nullptr ? std::string_view() : kernels_[op]->algorithm();
}

std::size_t Program::structure_bytes() const {
  const auto bytes = [](const auto& vector) { return vector.capacity() * sizeof(vector[0]); };
  std::size_t total = bytes(operators_) + bytes(added_) + bytes(arguments_) + bytes(tensors_) +
                      bytes(kernels_) + bytes(variables_) + marked_graph_->bytes();
  for (const Added& added : added_) total += added.path.capacity();
  return total;
}

void Program::bind(std::span<std::byte* const> arenas, std::span<std::byte* const> variables) {
  arenas_.assign(arenas.begin(), arenas.end());
  variables_.assign(variables.begin(), variables.end());
}

bool Program::is_transfer(std::uint32_t op) const {
  if (!contract(op).crosses_locations()) return false;
  return location(op).kind != DeviceKind::cpu ||
         places_[tensors_[inputs(op)[0] / 2].place].kind != DeviceKind::cpu;
}

Program::Transfer Program::transfer(std::uint32_t op, std::int64_t iteration) const {
  return {bound_address(outputs(op)[0], iteration), bound_address(inputs(op)[0], iteration),
          info(outputs(op)[0]).bytes()};
}

bool Program::is_exchange(std::uint32_t op) const {
  return as_half_copy(contract(op)) != nullptr;
}

Program::Exchange Program::exchange(std::uint32_t op, std::int64_t iteration) const {
  const HalfCopy& half = *as_half_copy(contract(op));
  const bool sends = half.side() == HalfCopy::Side::send;
  const std::uint32_t argument = sends ? inputs(op)[0] : outputs(op)[0];
  return {sends, half.peer(), half.channel(), bound_address(argument, iteration), half.info().bytes()};
}

std::vector<Program::PlannedOutput> Program::planned_outputs(std::uint32_t op) const {
  std::vector<PlannedOutput> planned;
  for (const std::uint32_t argument : outputs(op)) {
    const TensorRecord& tensor = tensors_[argument / 2];
    if (tensor.is_variable) continue;
    planned.push_back({tensor.offset, info(argument).bytes(), tensor.slots,
                       std::size_t{tensor.stride} * program::storage_alignment});
  }
  return planned;
}

Tensor Program::exchanged(std::uint32_t op) const {
  const HalfCopy& half = *as_half_copy(contract(op));
  const Operator copy = graph_.op(half.channel());
  return half.side() == HalfCopy::Side::send ? copy.input(0) : copy.output();
}

std::byte* Program::address(std::uint32_t argument, std::int64_t iteration) const {
  const TensorRecord& tensor = tensors_[argument / 2];
  if (tensor.is_variable) return variables_[tensor.offset] + tensor.stride * program::storage_alignment;
  std::size_t offset = tensor.offset;
  if (tensor.slots > 1) {
    offset += static_cast<std::size_t>(iteration % tensor.slots) * tensor.stride * program::storage_alignment;
  }
  return arenas_[tensor.place] + offset;
}

int Program::kernel_parts(std::uint32_t op) const {
  return kernels_[op] == nullptr ? 1 : kernels_[op]->parts();
}

std::size_t Program::kept_bytes(std::uint32_t op) const {
  return kernels_[op] == nullptr ? 0 : kernels_[op]->kept_bytes();
}

void Program::divide(int most_parts) {
  PURINE_CHECK(most_parts >= 1);
  most_parts_ = most_parts;
}

int Program::parts(std::uint32_t op) const {
  return poison_freed_ ? 1 : std::min(kernel_parts(op), most_parts_);
}

Program::PartRange Program::kernel_parts(std::uint32_t op, int part) const {
  const int all = kernel_parts(op);
  const int of = parts(op);
  return {all * part / of, all * (part + 1) / of};
}

/// Fills an output but for what inputs lie in it: those that are overwritten, and parts that are made there.
void Program::poison(std::span<std::byte> output, const std::uint32_t* arguments,
                     std::span<std::byte* const> inputs) const {
  std::vector<std::pair<std::size_t, std::size_t>> kept;  // ranges of the output
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::ptrdiff_t begin = inputs[i] - output.data();
    const std::ptrdiff_t end = begin + static_cast<std::ptrdiff_t>(info(arguments[i]).bytes());
    if (end <= 0 || begin >= static_cast<std::ptrdiff_t>(output.size())) continue;
    kept.emplace_back(static_cast<std::size_t>(std::max<std::ptrdiff_t>(begin, 0)),
                      static_cast<std::size_t>(end));
  }
  std::sort(kept.begin(), kept.end());
  kept.emplace_back(output.size(), output.size());
  std::size_t at = 0;
  for (const auto& [begin, end] : kept) {
    if (begin > at) std::memset(output.data() + at, 0xff, begin - at);
    at = std::max(at, end);
  }
}

void Program::run(std::uint32_t op, std::int64_t iteration, int part, Scratch scratch, std::ptrdiff_t shift) {
  Kernel* const kernel = kernels_[op].get();
  if (kernel == nullptr) return;
  const OperatorRecord& record = operators_[op];
  const std::size_t count = std::size_t{record.input_count} + record.output_count;
  std::array<std::byte*, 24> few;
  std::vector<std::byte*> many;
  std::byte** pointers = few.data();
  if (count > few.size()) {
    many.resize(count);
    pointers = many.data();
  }
  const std::uint32_t* const arguments = arguments_.data() + record.first_argument;
  for (std::size_t i = 0; i < count; ++i) pointers[i] = address(arguments[i], iteration) + shift;
  KernelCall call{{pointers, record.input_count},
                  {pointers + record.input_count, record.output_count},
                  scratch.memory,
                  iteration,
                  part,
                  scratch.kept};
  if (poison_freed_) {
    for (std::size_t i = record.input_count; i < count; ++i) {
      poison({pointers[i], info(arguments[i]).bytes()}, arguments, {pointers, record.input_count});
    }
  }
  const PartRange range = kernel_parts(op, part);
  for (call.part = range.begin; call.part < range.end; ++call.part) {
    kernel->run(call);
    call.scratch_kept = true;
  }
}

std::string Program::dump() const {
  std::string text;
  for (std::uint32_t op = 0; op < operator_count(); ++op) {
    text += path(op) + " = " + std::string(type(op)) + " " + shapes(op);
    if (is_view(op)) text += " view";
    const auto places = [&](std::span<const std::uint32_t> arguments) {
      for (const std::uint32_t argument : arguments) {
        const TensorRecord& tensor = tensors_[argument / 2];
        text += tensor.is_variable ? " variable" : " @" + std::to_string(tensor.offset);
        if (tensor.slots > 1) text += "x" + std::to_string(tensor.slots);
      }
    };
    places(outputs(op));
    text += "\n";
  }
  return text;
}

}  // namespace purine
