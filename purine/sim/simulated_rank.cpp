#include "purine/sim/simulated_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "purine/core/error.h"
#include "purine/net/transport/words.h"

namespace purine::sim {
SimulatedRank::Accelerator::Accelerator(VirtualTime& time, Location location, const Gpu& model,
                                        Activity& activity)
    : device(time, location, {model.memory_bytes, model.processor.start_seconds}, &activity),
      in(time, model.in_bytes_per_second, model.copy_seconds),
      out(time, model.out_bytes_per_second, model.copy_seconds),
      peer_in(time, model.peer_bytes_per_second, model.copy_seconds),
      peer_out(time, model.peer_bytes_per_second, 0),
      gpu(model) {
  for (Link* link : {&in, &out, &peer_in, &peer_out}) device.tell(link->meter);
}

SimulatedRank::SimulatedRank(const Shared& shared, std::int32_t rank)
    : shared_(shared),
      rank_(rank),
      cores_(shared.time, host().cpu.cores, host().cpu.all_busy_speed, nanoseconds(host().cpu.turn_seconds),
             nanoseconds(host().cpu.slice_seconds)),
      cpu_meter_(shared.time),
      transfers_(shared.network.messenger(rank), shared.time, net::TransferOptions{}) {
  shared_.network.listen(rank, *this, cpu_meter_, cores_);
  transfers_.set_chunk_bytes(shared_.pace.chunk_bytes);
  shared_.network.messenger(rank).bound_unsent(shared_.pace.unsent_bytes);
  FreezeOptions freeze;
  freeze.rank = rank;
  freeze.whole = &shared_.whole;
  freeze.bind_kernels = false;
  freeze.priorities = shared_.options.priorities;
  freeze.network_bytes_per_second = host().card.bytes_per_second;
  freeze.parallelism = shared_.options.workers > 0 ? shared_.options.workers : host().cpu.cores;
  program_ = std::make_unique<Program>(shared_.whole.graph(), freeze);
  check_memory();
  make_devices();
  plan_costs();

  std::vector<Lane> lanes;
  int workers = 0;
  for (const LaneUse& use : program_->lanes()) {
    if (use.kind == LaneKind::network) {
      lanes.push_back(Lane::remote());
    } else if (use.location.kind == DeviceKind::cpu) {
      lanes.push_back(Lane::cpu(workers_of(use.location)));
      workers += lanes.back().workers;
    } else {
      queues_.push_back(accelerator(use.location).device.make_queue());
      lanes.push_back(Lane::on(*queues_.back()));
    }
  }
  workers_.resize(static_cast<std::size_t>(workers));
  DispatcherOptions options;
  options.window = shared_.options.barrier ? 1 : shared_.options.window;
  options.clock = &shared_.time;
  options.threads = false;
  if (shared_.options.trace) {
    options.trace = [this](const Execution& execution) {
      if (trace_) trace_(execution);
    };
  }
  dispatcher_ = std::make_unique<Dispatcher>(program_->marked_graph(), *this, std::move(lanes), options);
}

SimulatedRank::Accelerator& SimulatedRank::accelerator(Location location) {
  return *accelerators_[static_cast<std::size_t>(location.index)];
}

void SimulatedRank::make_devices() {
  for (const Location& place : program_->places()) {
    if (place.kind == DeviceKind::cpu) continue;
    const auto index = static_cast<std::size_t>(place.index);
    if (accelerators_.size() <= index) accelerators_.resize(index + 1);
    accelerators_[index] = std::make_unique<Accelerator>(shared_.time, place, host().gpus[index], *this);
    accelerators_[index]->device.tell(shared_.network.outgoing(rank_));
    accelerators_[index]->device.tell(shared_.network.incoming(rank_));
  }
}

std::vector<Link*> SimulatedRank::way_of(std::uint32_t op) {
  const LaneUse& lane = program_->lanes()[program_->lane(op)];
  Accelerator& device = accelerator(lane.location);
  if (lane.kind == LaneKind::copy_in) return {&device.in};
  if (lane.kind == LaneKind::copy_out) return {&device.out};
  Accelerator& source = accelerator(program_->source(op));
  // Where devices have no way to each other, what they copy passes the host.
  if (device.gpu.peer_bytes_per_second > 0 && source.gpu.peer_bytes_per_second > 0) {
    return {&source.peer_out, &device.peer_in};
  }
  return {&source.out, &device.in};
}

void SimulatedRank::plan_costs() {
  const CostTable* const costs = shared_.options.costs_at(rank_);
  plans_.resize(program_->operator_count());
  for (std::uint32_t op = 0; op < program_->operator_count(); ++op) {
    Plan& plan = plans_[op];
    if (program_->is_exchange(op)) {
      const Program::Exchange exchange = program_->exchange(op, 0);
      plan.kind = exchange.sends ? Plan::Kind::send : Plan::Kind::receive;
      plan.bytes = static_cast<std::int64_t>(exchange.bytes);
      plan.peer = exchange.peer;
      plan.channel = exchange.channel;
      continue;
    }
    if (program_->is_view(op)) continue;
    if (program_->is_transfer(op)) {
      plan.kind = Plan::Kind::transfer;
      plan.bytes = static_cast<std::int64_t>(program_->transfer(op, 0).bytes);
      plan.way = way_of(op);
      continue;
    }
    plan.kind = Plan::Kind::compute;
    ++computing_;
    const Location location = program_->location(op);
    const bool on_cpu = location.kind == DeviceKind::cpu;
    const Processor& processor = on_cpu ? host().cpu.core : accelerator(location).gpu.processor;
    const double roofline = processor.seconds(program_->cost(op), program_->dtype(op));
    const double start = on_cpu ? processor.start_seconds : 0;
    // A large operator has a part for each worker.
    constexpr double worth_dividing = 50e-6;
    if (on_cpu && roofline > worth_dividing) plan.parts = workers_of(location);
    plan.seconds = roofline / plan.parts + start;
    if (costs == nullptr || location.kind != shared_.options.costs_of) continue;
    double scale = 1;
    const MeasuredCost* measured = costs->find(program_->type(op), program_->shapes(op));
    if (measured != nullptr) {
      ++measured_;
    } else {
      const Cost cost = program_->cost(op);
      measured = costs->most_alike(program_->type(op), cost, program_->dtype(op), processor);
      const bool same_type = measured != nullptr;
      if (!same_type) measured = costs->most_alike(cost, program_->dtype(op), processor);
      if (measured == nullptr) continue;
      scale = roofline / processor.seconds(measured->cost, program_->dtype(op));
      if (!same_type) {
        plan.seconds = scale * measured->seconds / plan.parts;
        continue;
      }
    }
    // The kernel chose its parts, and each was timed with its start.
    plan.parts = on_cpu ? measured->parts : 1;
    plan.seconds = scale * measured->seconds / plan.parts;
    plan.measured = measured;
    plan.scale = scale / plan.parts;
    // Devices that share what one device was measured with are not slow at the same time.
    const auto iterations = static_cast<double>(measured->iterations);
    const int device = shared_.options.costs_by_rank.empty() ? rank_ + location.index : 0;
    plan.first_iteration = std::llround(0.618 * device * iterations);
  }
}

double SimulatedRank::seconds_of_part(std::uint32_t op, std::int64_t iteration) const {
  const Plan& plan = plans_[op];
  if (plan.measured == nullptr) return plan.seconds;
  return plan.scale * plan.measured->seconds_at(plan.first_iteration + iteration, op);
}

int SimulatedRank::workers_of(Location cpu) const {
  // As Runtime shares them.
  std::vector<Location> cpus;
  for (const LaneUse& use : program_->lanes()) {
    if (use.location.kind == DeviceKind::cpu && use.kind == LaneKind::compute) cpus.push_back(use.location);
  }
  const Location first{rank_, DeviceKind::cpu, 0};
  if (std::find(cpus.begin(), cpus.end(), first) == cpus.end()) cpus.push_back(first);
  std::sort(cpus.begin(), cpus.end());
  const int count = static_cast<int>(cpus.size());
  const int workers =
      std::max(count, shared_.options.workers > 0 ? shared_.options.workers : host().cpu.cores);
  const int index = static_cast<int>(std::find(cpus.begin(), cpus.end(), cpu) - cpus.begin());
  return workers * (index + 1) / count - workers * index / count;
}

std::size_t SimulatedRank::bytes_at(Location location) const {
  std::size_t bytes = 0;
  for (std::size_t place = 0; place < program_->places().size(); ++place) {
    const Location at = program_->places()[place];
    const bool same = location.kind == DeviceKind::cpu ? at.kind == DeviceKind::cpu : at == location;
    if (same) bytes += program_->memory()[place].total(1);
  }
  return bytes;
}

void SimulatedRank::check_memory() const {
  const auto check = [&](Location location, std::size_t has) {
    const std::size_t needs = bytes_at(location);
    if (needs <= has) return;
    const auto gibibytes = [](std::size_t bytes) { return static_cast<double>(bytes) / (1U << 30U); };
    throw Error(
        "memory",
        fmt::format("{} needs {:.2f} GiB, and has {:.2f}", location.text(), gibibytes(needs), gibibytes(has)),
        "use a smaller batch or model, more devices, or a scheme that divides the variables");
  };
  check({rank_, DeviceKind::cpu, 0}, host().cpu.memory_bytes);
  for (const Location& place : program_->places()) {
    if (place.kind == DeviceKind::cpu) continue;
    check(place, host().gpus[static_cast<std::size_t>(place.index)].memory_bytes);
  }
}

void SimulatedRank::something_completed() {
  if (is_active_) return;
  is_active_ = true;
  shared_.active.push_back(this);
}

void SimulatedRank::proceed() {
  is_active_ = false;
  dispatcher_->issue_ready();
}

void SimulatedRank::begin(std::uint32_t op, std::int64_t iteration, int, int worker,
                          CompletionListener& listener, std::uint64_t tag) {
  ++executions_;
  workers_[static_cast<std::size_t>(worker)] = {&listener, tag};
  cpu_meter_.operator_begins();
  shared_.network.outgoing(rank_).operator_begins();
  shared_.network.incoming(rank_).operator_begins();
  cores_.run(nanoseconds(seconds_of_part(op, iteration)), *this, static_cast<std::uint64_t>(worker));
}

void SimulatedRank::work_done(std::uint64_t worker) {
  cpu_meter_.operator_ends();
  shared_.network.outgoing(rank_).operator_ends();
  shared_.network.incoming(rank_).operator_ends();
  something_completed();
  const BusyWorker busy = workers_[worker];
  busy.listener->completed(busy.tag, nullptr);
}

void SimulatedRank::issue(std::uint32_t op, std::int64_t iteration, Queue& queue) {
  ++executions_;
  const Plan& plan = plans_[op];
  if (plan.kind == Plan::Kind::compute) queue.launch({nullptr, seconds_of_part(op, iteration)});
  if (plan.kind == Plan::Kind::transfer) static_cast<SimulatedQueue&>(queue).move(plan.way, plan.bytes);
}

void SimulatedRank::start(std::uint32_t op, std::int64_t iteration, double urgency,
                          CompletionListener& listener, std::uint64_t tag) {
  ++executions_;
  const Plan& plan = plans_[op];
  const Message message{plan.peer, plan.channel, iteration};
  // Nobody looks into the memory; its addresses are only told apart.
  auto* const memory = reinterpret_cast<std::byte*>(this);
  if (plan.kind == Plan::Kind::send) {
    ++messages_sent_;
    transfers_.send({message, memory, static_cast<std::size_t>(plan.bytes), urgency, &listener, tag});
  } else {
    transfers_.receive({message, memory, static_cast<std::size_t>(plan.bytes), 0, &listener, tag});
  }
}

void SimulatedRank::words_arrived(int peer, std::string_view encoded) {
  something_completed();
  const net::Words words = net::Words::decode(encoded);
  PURINE_CHECK(words.kind == net::Words::Kind::credit);
  transfers_.credit(peer, words);
}

void SimulatedRank::chunk_sent(std::uint64_t ticket) {
  something_completed();
  transfers_.chunk_sent(ticket);
}

void SimulatedRank::chunk_received(int, std::uint64_t ticket) {
  something_completed();
  transfers_.chunk_received(ticket);
}

void SimulatedRank::reset_meters() {
  cpu_meter_.reset();
  messages_sent_ = 0;
  shared_.network.outgoing(rank_).reset();
  shared_.network.incoming(rank_).reset();
  for (const auto& device : accelerators_) {
    if (device == nullptr) continue;
    for (OverlapMeter* meter : {&device->device.meter, &device->in.meter, &device->out.meter,
                                &device->peer_in.meter, &device->peer_out.meter}) {
      meter->reset();
    }
  }
}

void SimulatedRank::add_results(SimulationResult& result) {
  const Location cpu{rank_, DeviceKind::cpu, 0};
  result.devices.push_back({cpu, cpu_meter_.overlap(), bytes_at(cpu), host().cpu.memory_bytes});
  const auto add_link = [&](std::string name, OverlapMeter& meter) {
    if (const Overlap use = meter.overlap(); use.bytes > 0) result.links.push_back({std::move(name), use});
  };
  add_link(fmt::format("{} network out", rank_), shared_.network.outgoing(rank_));
  add_link(fmt::format("{} network in", rank_), shared_.network.incoming(rank_));
  result.bytes_sent += shared_.network.outgoing(rank_).overlap().bytes;
  for (const auto& device : accelerators_) {
    if (device == nullptr) continue;
    const Location location = device->device.location();
    result.devices.push_back(
        {location, device->device.meter.overlap(), bytes_at(location), device->gpu.memory_bytes});
    add_link(location.text() + " in", device->in.meter);
    add_link(location.text() + " out", device->out.meter);
    add_link(location.text() + " peer in", device->peer_in.meter);
    add_link(location.text() + " peer out", device->peer_out.meter);
  }
  result.messages += messages_sent_;
  result.operators += program_->operator_count();
  result.measured += measured_;
  result.computing += computing_;
  result.executions += executions_;
}

}  // namespace purine::sim
