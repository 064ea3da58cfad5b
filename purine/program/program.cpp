#include "purine/program/program.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "purine/core/error.h"
#include "purine/core/random.h"
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

namespace {

/// A rough cost in seconds, enough to rank operators: a roofline of one core, and the price of a start.
double estimate_seconds(const Cost& cost) {
  constexpr double operations_per_second = 50e9;
  constexpr double bytes_per_second = 8e9;
  constexpr double start = 1e-6;
  return start + std::max(cost.operations / operations_per_second, cost.bytes / bytes_per_second);
}

}  // namespace

Program::Program(Graph& graph, const FreezeOptions& options)
    : graph_(graph), poison_freed_(options.poison_freed) {
  PURINE_CHECK(options.kernels != nullptr);
  verify(graph);
  Lowered lowered = program::lower(graph);
  program::assign_layouts(graph, lowered, options.channels_last);
  const MemoryPlan plan = program::plan_memory(lowered, program::serial_order(lowered), options.memory);
  store(lowered, plan);
  build_marked_graph(lowered, plan, options);
  bind_kernels(options, plan.elided);
}

Program::~Program() = default;

void Program::store(const Lowered& lowered, const MemoryPlan& plan) {
  tensors_.reserve(lowered.tensors.size());
  for (std::size_t i = 0; i < lowered.tensors.size(); ++i) {
    const TensorStorage& storage = plan.tensors[i];
    tensors_.push_back({storage.offset,
                        static_cast<std::uint32_t>(storage.stride / program::storage_alignment),
                        static_cast<std::uint16_t>(storage.slots),
                        storage.kind == TensorStorage::Kind::variable, lowered.tensors[i].origin});
    memory_.tensors += lowered.tensors[i].info.bytes() * storage.slots;
  }
  operators_.reserve(lowered.operators.size());
  for (const LoweredOperator& op : lowered.operators) {
    OperatorRecord record;
    record.origin = op.origin;
    if (op.origin == none) {
      record.origin = added_mark | static_cast<std::uint32_t>(added_.size());
      added_.push_back({op.contract, op.added_path, op.location});
    }
    record.first_argument = static_cast<std::uint32_t>(arguments_.size());
    record.input_count = static_cast<std::uint16_t>(op.inputs.size());
    record.output_count = static_cast<std::uint16_t>(op.outputs.size());
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
  memory_.slots = plan.slot_bytes;
  memory_.arena = plan.arena_bytes - plan.slot_bytes;
  for (const Variable variable : graph_.variables()) memory_.variables += variable.info().bytes();
}

void Program::build_marked_graph(const Lowered& lowered, const MemoryPlan& plan,
                                 const FreezeOptions& options) {
  MarkedGraphBuilder builder(operator_count());
  builder.set_parallelism(0, options.parallelism);
  for (std::uint32_t op = 0; op < operator_count(); ++op) {
    builder.set_cost(op, plan.elided[op] ? 0 : estimate_seconds(cost(op)));
  }
  for (const LoweredTensor& tensor : lowered.tensors) {
    if (tensor.producer == none) continue;
    for (const std::uint32_t consumer : tensor.consumers)
      builder.add_edge({tensor.producer, consumer, 0, EdgeKind::value});
  }
  for (const program::LoweredVariable& variable : lowered.variables) {
    if (variable.tensor == none || variable.next == none) continue;
    const std::uint32_t update = lowered.tensors[variable.next].producer;
    for (const std::uint32_t reader : lowered.tensors[variable.tensor].consumers) {
      builder.add_edge({update, reader, 1, EdgeKind::value});
    }
  }
  for (const StorageOrder& order : plan.orders) {
    builder.add_edge({order.before, order.after, order.delay, EdgeKind::order});
  }
  marked_graph_ = std::make_unique<MarkedGraph>(builder.build([this](std::uint32_t op) { return path(op); }));
}

void Program::bind_kernels(const FreezeOptions& options, const std::vector<bool>& elided) {
  kernels_.resize(operators_.size());
  for (std::uint32_t op = 0; op < operator_count(); ++op) {
    if (elided[op]) continue;
    std::vector<TensorInfo> infos;
    std::vector<Layout> layouts;
    const std::size_t input_count = operators_[op].input_count;
    const auto describe = [&](std::span<const std::uint32_t> arguments) {
      for (const std::uint32_t argument : arguments) {
        infos.push_back(info(argument));
        layouts.push_back(argument % 2 == 1 ? Layout::channels_last : Layout::plain);
      }
    };
    describe(inputs(op));
    describe(outputs(op));
    const Contract& bound = contract(op);
    if (dynamic_cast<const HostInput*>(&bound) != nullptr) {
      kernels_[op] = options.host_input(graph_.tensor(tensors_[outputs(op)[0] / 2].origin));
    } else if (dynamic_cast<const HostRead*>(&bound) != nullptr) {
      kernels_[op] = options.host_read(graph_.tensor(tensors_[inputs(op)[0] / 2].origin));
    } else {
      const std::string name = path(op);
      kernels_[op] = options.kernels->bind({bound, std::span<const TensorInfo>(infos).first(input_count),
                                            std::span<const TensorInfo>(infos).subspan(input_count),
                                            std::span<const Layout>(layouts).first(input_count),
                                            std::span<const Layout>(layouts).subspan(input_count),
                                            options.seed, hash_text(name), name});
    }
    memory_.scratch_per_worker = std::max(memory_.scratch_per_worker, kernels_[op]->scratch_bytes());
  }
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

Location Program::location(std::uint32_t op) const {
  const std::uint32_t origin = operators_[op].origin;
  if ((origin & added_mark) != 0) return added_[origin & ~added_mark].location;
  return graph_.op(origin).location();
}

Cost Program::cost(std::uint32_t op) const {
  std::vector<TensorInfo> input_infos;
  std::vector<TensorInfo> output_infos;
  for (const std::uint32_t argument : inputs(op)) input_infos.push_back(info(argument));
  for (const std::uint32_t argument : outputs(op)) output_infos.push_back(info(argument));
  return contract(op).cost(input_infos, output_infos);
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

std::size_t Program::structure_bytes() const {
  const auto bytes = [](const auto& vector) { return vector.capacity() * sizeof(vector[0]); };
  std::size_t total = bytes(operators_) + bytes(added_) + bytes(arguments_) + bytes(tensors_) +
                      bytes(kernels_) + bytes(variables_) + marked_graph_->bytes();
  for (const Added& added : added_) total += added.path.capacity();
  return total;
}

void Program::bind(std::byte* arena, std::span<std::byte* const> variables) {
  arena_ = arena;
  variables_.assign(variables.begin(), variables.end());
}

std::byte* Program::address(std::uint32_t argument, std::int64_t iteration) const {
  const TensorRecord& tensor = tensors_[argument / 2];
  if (tensor.is_variable) return variables_[tensor.offset];
  std::size_t offset = tensor.offset;
  if (tensor.slots > 1) {
    offset += static_cast<std::size_t>(iteration % tensor.slots) * tensor.stride * program::storage_alignment;
  }
  return arena_ + offset;
}

int Program::parts(std::uint32_t op) const {
  return kernels_[op] == nullptr || poison_freed_ ? 1 : kernels_[op]->parts();
}

void Program::run(std::uint32_t op, std::int64_t iteration, int part, std::byte* scratch) {
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
  for (std::size_t i = 0; i < count; ++i) pointers[i] = address(arguments[i], iteration);
  KernelCall call{{pointers, record.input_count},
                  {pointers + record.input_count, record.output_count},
                  scratch,
                  iteration,
                  part};
  if (poison_freed_) {
    for (std::size_t i = record.input_count; i < count; ++i) {
      if (std::find(pointers, pointers + record.input_count, pointers[i]) == pointers + record.input_count) {
        std::memset(pointers[i], 0xff, info(arguments[i]).bytes());
      }
    }
    for (call.part = 0; call.part < kernel->parts(); ++call.part) kernel->run(call);
    return;
  }
  kernel->run(call);
}

std::string Program::dump() const {
  std::string text;
  for (std::uint32_t op = 0; op < operator_count(); ++op) {
    text += path(op) + " = " + std::string(type(op)) + " " + shapes(op);
    if (kernels_[op] == nullptr) text += " view";
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
