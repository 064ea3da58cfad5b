#include "tests/runtime/random_program.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "purine/core/random.h"

namespace purine {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ hash >> 29U;
}

// Draws that follow each other.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed, 0, 0) {}
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(random_.below(next_++, bound));
  }
  bool one_in(std::uint32_t count) { return below(count) == 0; }

 private:
  Random random_;
  std::uint64_t next_ = 0;
};

}  // namespace

TestProgram random_program(const RandomProgramOptions& options) {
  Draws draws(options.seed);
  TestProgram program;
  program.lane_devices = options.lane_devices;
  program.operators.resize(options.operators);
  for (std::uint32_t op = 0; op < options.operators; ++op) {
    TestProgram::Operator& entry = program.operators[op];
    entry.lane = draws.below(static_cast<std::uint32_t>(options.lane_devices.size()));
    const bool on_cpu = program.lane_devices[entry.lane] == TestProgram::cpu;
    if (on_cpu && draws.one_in(4)) entry.parts = 1 + static_cast<int>(draws.below(options.most_parts));
    for (std::uint32_t write = draws.one_in(8) ? 0 : 1 + draws.below(2); write > 0; --write) {
      entry.writes.push_back(static_cast<std::uint32_t>(program.tensors.size()));
      program.tensors.push_back({op, 1 + draws.below(2)});
    }
  }
  for (std::uint32_t op = 0; op < options.operators; ++op) {
    TestProgram::Operator& entry = program.operators[op];
    const auto add_read = [&](std::uint32_t tensor, std::uint32_t delay) {
      for (const TestProgram::Read& read : entry.reads) {
        if (read.tensor == tensor) return;
      }
      entry.reads.push_back({tensor, delay});
    };
    for (const std::uint32_t tensor : entry.writes) {
      if (draws.one_in(4)) add_read(tensor, program.tensors[tensor].slots);  // a variable
    }
    if (program.tensors.empty()) continue;
    for (std::uint32_t read = draws.below(4); read > 0; --read) {
      const std::uint32_t tensor = draws.below(static_cast<std::uint32_t>(program.tensors.size()));
      const std::uint32_t delay = draws.below(program.tensors[tensor].slots + 1);
      const std::uint32_t producer = program.tensors[tensor].producer;
      // What lies in the future can't be read, and what is about to be overwritten must be read before.
      if (delay == 0 && producer >= op) continue;
      if (delay == program.tensors[tensor].slots && producer < op) continue;
      add_read(tensor, delay);
    }
    if (op > 0 && draws.one_in(4)) {
      program.order_edges.push_back({draws.below(op), op, 0, EdgeKind::order});
    }
    if (draws.one_in(6)) {
      program.order_edges.push_back(
          {op, draws.below(options.operators), 1 + draws.below(2), EdgeKind::order});
    }
  }
  return program;
}

MarkedGraph TestProgram::mark() const {
  MarkedGraphBuilder builder(static_cast<std::uint32_t>(operators.size()));
  const auto add = [&](std::uint32_t from, std::uint32_t to, std::uint32_t tokens, EdgeKind kind) {
    const std::uint32_t from_lane = operators[from].lane;
    const std::uint32_t to_lane = operators[to].lane;
    EdgeTiming timing = EdgeTiming::done;
    if (lane_devices[from_lane] >= 0 && lane_devices[from_lane] == lane_devices[to_lane]) {
      timing = from_lane == to_lane ? EdgeTiming::issued : EdgeTiming::event;
    }
    builder.add_edge({from, to, tokens, kind, timing});
  };
  for (std::uint32_t op = 0; op < operators.size(); ++op) {
    builder.set_lane(op, operators[op].lane);
    builder.set_cost(op, 1e-6 * (1 + op % 3));
    for (const Read& read : operators[op].reads) {
      const Tensor& tensor = tensors[read.tensor];
      add(tensor.producer, op, read.delay, EdgeKind::value);
      const bool in_place = tensor.producer == op && read.delay == tensor.slots;
      if (!in_place) add(op, tensor.producer, tensor.slots - read.delay, EdgeKind::order);
    }
  }
  for (const MarkedEdge& edge : order_edges) add(edge.from, edge.to, edge.tokens, edge.kind);
  return builder.build([](std::uint32_t op) { return "operator_" + std::to_string(op); });
}

std::vector<std::vector<bool>> TestProgram::poisoned(
    const std::vector<std::pair<std::uint32_t, std::int64_t>>& throwing, std::int64_t iterations) const {
  std::vector<std::vector<bool>> result;
  for (std::int64_t t = 0; t < iterations; ++t) {
    result.emplace_back(operators.size(), false);
    for (std::uint32_t op = 0; op < operators.size(); ++op) {
      bool poison = std::count(throwing.begin(), throwing.end(), std::pair(op, t)) > 0;
      for (const Read& read : operators[op].reads) {
        if (t < read.delay) continue;
        poison |= result[static_cast<std::size_t>(t - read.delay)][tensors[read.tensor].producer];
      }
      result.back()[op] = poison;
    }
  }
  return result;
}

CheckingExecutor::CheckingExecutor(const TestProgram& program, Options options)
    : program_(program), options_(std::move(options)), done_(static_cast<std::size_t>(options_.iterations)) {
  for (std::uint32_t tensor = 0; tensor < program.tensors.size(); ++tensor) {
    const auto elements = static_cast<std::size_t>(program.operators[program.tensors[tensor].producer].parts);
    const std::uint32_t slots = program.tensors[tensor].slots;
    slots_.emplace_back();
    for (std::uint32_t index = 0; index < slots; ++index) {
      auto slot = std::make_unique<Slot>();
      slot->version = std::make_unique<std::atomic<std::int64_t>[]>(elements);
      for (std::size_t element = 0; element < elements; ++element) {
        slot->version[element] = std::int64_t{index} - slots;
        slot->values.push_back(mix(mix(tensor, index), element));
      }
      slots_.back().push_back(std::move(slot));
    }
  }
  for (const TestProgram::Operator& op : program.operators) {
    parts_.emplace_back(static_cast<std::size_t>(op.parts));
    for (Part& part : parts_.back()) part.ran.assign(static_cast<std::size_t>(options_.iterations), false);
    parts_an_iteration_ += op.parts;
  }
}

void CheckingExecutor::run(std::uint32_t op, std::int64_t iteration, int part, int) {
  perform(op, iteration, part);
}

void CheckingExecutor::issue(std::uint32_t op, std::int64_t iteration, Queue& queue) {
  const auto& throwing = options_.throwing;
  if (!options_.fail_on_queue && std::count(throwing.begin(), throwing.end(), std::pair(op, iteration)) > 0) {
    throw TestFailure("operator " + std::to_string(op) + " can't be issued");
  }
  queue.launch({[this, op, iteration](void*) { perform(op, iteration, 0); }, 1e-6});
}

void CheckingExecutor::run_serially(std::int64_t iterations) {
  for (std::int64_t t = 0; t < iterations; ++t) {
    for (std::uint32_t op = 0; op < program_.operators.size(); ++op) {
      for (int part = 0; part < parts(op); ++part) perform(op, t, part);
    }
  }
}

void CheckingExecutor::perform(std::uint32_t op, std::int64_t iteration, int part) {
  check_window(iteration);
  Part& record = parts_[op][static_cast<std::size_t>(part)];
  if (record.last_iteration >= iteration || record.ran[static_cast<std::size_t>(iteration)]) {
    report("operator " + std::to_string(op) + " fired twice, or out of order, in iteration " +
           std::to_string(iteration));
  }
  record.last_iteration = iteration;
  const auto& throwing = options_.throwing;
  if (std::count(throwing.begin(), throwing.end(), std::pair(op, iteration)) > 0) {
    throw TestFailure("operator " + std::to_string(op) + " failed");
  }
  std::uint64_t value = mix(mix(op, static_cast<std::uint64_t>(iteration)), static_cast<std::uint64_t>(part));
  for (const TestProgram::Read& input : program_.operators[op].reads) {
    value = mix(value, read(op, input, iteration, part));
  }
  pass_time(op, iteration, part);
  for (const std::uint32_t tensor : program_.operators[op].writes) {
    write(op, tensor, iteration, part, mix(value, tensor));
  }
  record.results = mix(record.results, value);
  record.ran[static_cast<std::size_t>(iteration)] = true;
  done_[static_cast<std::size_t>(iteration)].fetch_add(1);
}

std::uint64_t CheckingExecutor::read(std::uint32_t op, const TestProgram::Read& read, std::int64_t iteration,
                                     int part) {
  const TestProgram::Tensor& tensor = program_.tensors[read.tensor];
  const std::int64_t expected = iteration - read.delay;
  Slot& source = slot(read.tensor, expected);
  const bool in_place = tensor.producer == op && read.delay == tensor.slots;
  // The parts of an update in place read each their own element only.
  const std::size_t first = in_place ? static_cast<std::size_t>(part) : 0;
  const std::size_t last = in_place ? first + 1 : source.values.size();
  source.readers.fetch_add(1);
  if (!in_place && source.writers.load() > 0) {
    report("operator " + std::to_string(op) + " reads tensor " + std::to_string(read.tensor) +
           " while it is written");
  }
  std::uint64_t value = 0;
  for (std::size_t element = first; element < last; ++element) {
    if (source.version[element].load() != expected) {
      report("operator " + std::to_string(op) + " reads version " +
             std::to_string(source.version[element].load()) + " of tensor " + std::to_string(read.tensor) +
             " instead of " + std::to_string(expected));
    }
    value = mix(value, source.values[element]);
  }
  if (!in_place) pass_time(op, iteration, part + 100);
  source.readers.fetch_sub(1);
  return value;
}

void CheckingExecutor::write(std::uint32_t op, std::uint32_t tensor, std::int64_t iteration, int part,
                             std::uint64_t value) {
  Slot& target = slot(tensor, iteration);
  const auto element = static_cast<std::size_t>(part);
  target.writers.fetch_add(1);
  const bool updates_in_place =
      std::any_of(program_.operators[op].reads.begin(), program_.operators[op].reads.end(),
                  [&](const TestProgram::Read& read) { return read.tensor == tensor; });
  if (!updates_in_place && target.readers.load() > 0) {
    report("operator " + std::to_string(op) + " writes tensor " + std::to_string(tensor) +
           " while it is read");
  }
  if (target.version[element].load() >= iteration) {
    report("operator " + std::to_string(op) + " writes tensor " + std::to_string(tensor) + " out of order");
  }
  target.version[element].store(iteration);
  target.values[element] = value;
  target.writers.fetch_sub(1);
}

CheckingExecutor::Slot& CheckingExecutor::slot(std::uint32_t tensor, std::int64_t version) const {
  const std::int64_t slots = program_.tensors[tensor].slots;
  return *slots_[tensor][static_cast<std::size_t>((version % slots + slots) % slots)];
}

// Where operators fail, an iteration never gets all its parts, and says nothing.
void CheckingExecutor::check_window(std::int64_t iteration) {
  if (!options_.throwing.empty()) return;
  if (iteration >= options_.window &&
      done_[static_cast<std::size_t>(iteration - options_.window)].load() != parts_an_iteration_) {
    report("iteration " + std::to_string(iteration) + " started outside of the window");
  }
  if (iteration > 0 && done_[static_cast<std::size_t>(iteration - 1)].load() != parts_an_iteration_) {
    overlapped_.store(true);
  }
}

void CheckingExecutor::pass_time(std::uint32_t op, std::int64_t iteration, int part) const {
  if (options_.longest_microseconds == 0) return;
  const Random random(options_.seed, op, static_cast<std::uint64_t>(iteration));
  const std::uint32_t bits = random.bits(static_cast<std::uint64_t>(part));
  if (bits % 64 == 0) {
    std::this_thread::yield();
  } else if (bits % 4 == 1) {
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::microseconds(bits / 64 % (options_.longest_microseconds + 1U));
    while (std::chrono::steady_clock::now() < end) {
    }
  }
}

void CheckingExecutor::report(const std::string& hazard) {
  const std::lock_guard lock(mutex_);
  if (hazards_.size() < 2000) hazards_ += hazard + "\n";
}

std::string CheckingExecutor::hazards() const {
  const std::lock_guard lock(mutex_);
  return hazards_;
}

std::vector<std::uint64_t> CheckingExecutor::results() const {
  std::vector<std::uint64_t> result;
  for (const auto& parts : parts_) {
    result.push_back(0);
    for (const Part& part : parts) result.back() = mix(result.back(), part.results);
  }
  return result;
}

bool CheckingExecutor::ran(std::uint32_t op, std::int64_t iteration) const {
  return std::all_of(parts_[op].begin(), parts_[op].end(),
                     [&](const Part& part) { return part.ran[static_cast<std::size_t>(iteration)]; });
}

std::int64_t CheckingExecutor::version(std::uint32_t tensor, std::int64_t t) const {
  return slot(tensor, t).version[0].load();
}

}  // namespace purine
