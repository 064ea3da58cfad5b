#include "purine/session/session_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "purine/backend/cpu/worker_thread.h"
#include "purine/core/error.h"
#include "purine/session/iteration_error.h"

namespace purine {
namespace {

/// Iterations whose watched values the host may not have read yet, besides those that are under way.
constexpr std::int64_t ring_slots_beyond_window = 6;

void prepare_this_thread() {
  thread_local bool prepared = false;
  if (prepared) return;
  cpu::prepare_worker_thread();
  prepared = true;
}

}  // namespace

FreezeOptions freeze_options(const Runtime& runtime, const SessionOptions& options) {
  FreezeOptions freeze;
  freeze.rank = runtime.rank();
  freeze.kernels = runtime.kernels();
  freeze.seed = options.seed;
  freeze.channels_last = options.channels_last;
  freeze.fuse = options.fuse;
  freeze.memory.distance = options.storage_distance;
  freeze.poison_freed = options.poison_freed;
  freeze.parallelism = runtime.workers();
  freeze.binding_threads = runtime.binding_threads();
  freeze.network_bytes_per_second = runtime.network_bytes_per_second();
  return freeze;
}

SessionProgram::SessionProgram(Runtime& runtime, Graph& graph, const SessionOptions& options,
                               const std::map<std::string, Fill>& fills, WaitMeter& meter)
    : graph_(graph),
      options_(options),
      fills_(fills),
      meter_(meter),
      endpoint_(runtime.endpoint()),
      transfer_meter_(runtime.transfer_meter()),
      ring_(static_cast<std::size_t>(options.window + ring_slots_beyond_window)) {
  const std::vector<Tensor> watched = graph.watched();
  for (std::vector<std::vector<std::byte>>& entry : ring_) {
    for (const Tensor tensor : watched) entry.emplace_back(tensor.info().bytes());
  }
  FreezeOptions freeze = freeze_options(runtime, options);
  freeze.host_input = [this](Tensor tensor) { return input_kernel(tensor); };
  freeze.host_read = [this](Tensor tensor) { return read_kernel(tensor); };
  program_ = std::make_unique<Program>(graph, freeze);
  for (std::uint32_t op = 0; op < program_->operator_count(); ++op) {
    brings_data_.push_back(program_->brings_data(op));
  }
  if (endpoint_ != nullptr) arrivals_.emplace(program_->operator_count());
}

void SessionProgram::start(Runtime& runtime, const DeviceMemory& memory,
                           std::span<const AlignedBuffer> scratch) {
  scratch_ = scratch;
  scratch_use_.resize(scratch.size());
  std::vector<std::byte*> arenas;
  for (const Location& place : program_->places()) {
    arenas.push_back(memory.arena(place));
    device_scratch_.push_back(memory.scratch(place));
  }
  program_->bind(arenas, memory.variables());
  std::vector<Lane> lanes;
  for (const LaneUse& use : program_->lanes()) {
    if (use.kind == LaneKind::network) {
      lanes.push_back(Lane::remote());
      continue;
    }
    if (use.location.kind == DeviceKind::cpu) {
      lanes.push_back(Lane::cpu(runtime.workers_of(use.location)));
      continue;
    }
    queues_.push_back(runtime.device(use.location).make_queue());
    lanes.push_back(Lane::on(*queues_.back()));
  }
  DispatcherOptions options;
  options.window = options_.window;
  if (options_.trace || arrivals_) {
    options.trace = [this](const Execution& execution) { ran(execution); };
  }
  dispatcher_ = std::make_unique<Dispatcher>(program_->marked_graph(), *this, std::move(lanes), options);
}

void SessionProgram::begin_at(std::int64_t iteration) {
  base_ = iteration - dispatcher_->finished();
  // Another program may have used the scratch memory, and an iteration may be run again with other values.
  std::fill(scratch_use_.begin(), scratch_use_.end(), ScratchUse{});
}

void SessionProgram::ran(const Execution& execution) {
  const bool is_exchange = program_->lanes()[execution.lane].kind == LaneKind::network;
  if (is_exchange && !program_->exchange(execution.op, 0).sends) arrivals_->end(execution.op);
  if (!options_.trace) return;
  options_.trace({program_.get(), execution.op, execution.part, execution.iteration + base_, execution.lane,
                  execution.worker, execution.begin, execution.end});
}

std::optional<RankWait> SessionProgram::waits_for() const {
  if (!arrivals_) return std::nullopt;
  const std::optional<Arrivals::Missing> missing = arrivals_->first_missing();
  if (!missing) return std::nullopt;
  return RankWait{program_->exchange(missing->op, 0).peer, program_->exchanged(missing->op).path(),
                  missing->iteration + base_, 0};
}

void SessionProgram::throw_failure() const {
  const std::optional<Failure> failure = dispatcher_->failure();
  PURINE_CHECK(failure.has_value());
  const std::lock_guard lock(missing_mutex_);
  rethrow(missing_ && program_->is_exchange(failure->op) ? *missing_ : *failure);
}

void SessionProgram::rethrow(const Failure& failure) const {
  const std::string path = program_->path(failure.op);
  const std::string location = program_->location(failure.op).text();
  const std::int64_t iteration = failure.iteration + base_;
  try {
    std::rethrow_exception(failure.cause);
  } catch (const RemoteError& error) {
    if (!program_->is_exchange(failure.op)) throw;
    const Program::Exchange exchange = program_->exchange(failure.op, 0);
    const std::string peer = "rank " + std::to_string(exchange.peer);
    throw RemoteError(error.rank(),
                      error.message() + "; " + location + " waited at " + path + " for " +
                          (exchange.sends ? peer + " to take " : std::string()) +
                          program_->exchanged(failure.op).path() + (exchange.sends ? "" : " from " + peer) +
                          " (iteration " + std::to_string(iteration) + ")",
                      error.hint(), error.state());
  } catch (const Error& error) {
    throw IterationError(error.at(path).on(location), iteration);
  } catch (const std::exception& error) {
    throw IterationError(Error(program_->type(failure.op), error.what()).at(path).on(location), iteration);
  }
}

void SessionProgram::failed(const Failure& failure) {
  if (endpoint_ == nullptr) return;
  try {
    rethrow(failure);
  } catch (const RemoteError& error) {
    // Everybody knows. Of all exchanges that end now, one with the rank that is missing says the most.
    if (!program_->is_exchange(failure.op) || program_->exchange(failure.op, 0).peer != error.rank()) return;
    const std::lock_guard lock(missing_mutex_);
    if (!missing_ ||
        std::pair(failure.iteration, failure.op) < std::pair(missing_->iteration, missing_->op)) {
      missing_ = failure;
    }
  } catch (const Error& error) {
    endpoint_->fail("at " + endpoint_->host(endpoint_->rank()) + ", " + error.what());
  }
}

void SessionProgram::run(std::uint32_t op, std::int64_t iteration, int part, int worker) {
  prepare_this_thread();
  const WaitMeter::Scope running(meter_, brings_data_[op]);
  const trace::TransferMeter::Computing computing(transfer_meter_);
  ScratchUse& use = scratch_use_[static_cast<std::size_t>(worker)];
  const std::int64_t absolute = iteration + base_;
  const bool kept = use.op == op && use.iteration == absolute;
  use.iteration = -1;  // what a part leaves that fails is nothing
  program_->run(op, absolute, part, {scratch_[static_cast<std::size_t>(worker)].data(), kept});
  use = {op, absolute};
}

void SessionProgram::issue(std::uint32_t op, std::int64_t iteration, Queue& queue) {
  const std::int64_t absolute = iteration + base_;
  if (program_->is_transfer(op)) {
    const Program::Transfer transfer = program_->transfer(op, absolute);
    queue.copy(transfer.destination, transfer.source, transfer.bytes);
    return;
  }
  std::byte* const scratch = device_scratch_[program_->place(op)];
  queue.launch({[this, op, absolute, scratch](void* native) {
                  prepare_this_thread();
                  const WaitMeter::Scope running(meter_, brings_data_[op] != 0);
                  const trace::TransferMeter::Computing computing(transfer_meter_);
                  const std::ptrdiff_t shift = static_cast<const emu::NativeQueue*>(native)->shift;
                  for (int part = 0; part < program_->parts(op); ++part) {
                    program_->run(op, absolute, part, {scratch + shift, part > 0}, shift);
                  }
                },
                0});
}

void SessionProgram::start(std::uint32_t op, std::int64_t iteration, double urgency,
                           CompletionListener& listener, std::uint64_t tag) {
  const Program::Exchange exchange = program_->exchange(op, iteration + base_);
  const Message message{exchange.peer, exchange.channel, iteration + base_};
  if (exchange.sends) {
    endpoint_->send(message, exchange.memory, exchange.bytes, urgency, listener, tag);
  } else {
    arrivals_->begin(op);
    endpoint_->receive(message, exchange.memory, exchange.bytes, listener, tag);
  }
}

std::unique_ptr<Kernel> SessionProgram::read_kernel(Tensor tensor) {
  const std::vector<Tensor> watched = graph_.watched();
  const auto index =
      static_cast<std::size_t>(std::find(watched.begin(), watched.end(), tensor) - watched.begin());
  PURINE_CHECK(index < watched.size());
  return make_kernel([this, index](const KernelCall& call) {
    std::vector<std::byte>& value = ring_[static_cast<std::size_t>(call.iteration) % ring_.size()][index];
    std::memcpy(value.data(), call.inputs[0], value.size());
  });
}

std::unique_ptr<Kernel> SessionProgram::input_kernel(Tensor tensor) {
  const std::size_t bytes = tensor.info().bytes();
  return make_kernel([this, path = tensor.path(), bytes](const KernelCall& call) {
    const auto fill = fills_.find(path);
    if (fill == fills_.end()) {
      throw Error("session", "the input has no values", "call Session::feed for it before the first run");
    }
    fill->second(call.iteration, {call.outputs[0], bytes});
  });
}

}  // namespace purine
