#include "purine/trace/replay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace purine::trace {
namespace {

/// One operator in one iteration.
struct Execution {
  std::size_t rank = 0;
  std::int64_t iteration = 0;
  std::size_t pool = 0;
  std::int64_t began = 0;             // in the trace: what began earlier goes first
  std::vector<std::int64_t> parts;    // how long each takes
  std::size_t parts_left = 0;         // to end
  std::size_t waits_for = 0;          // executions, the iteration's admission, and a message's other end
  std::vector<std::size_t> releases;  // executions that wait for this one
  std::size_t other_end = no_other;   // of a message
  bool sends = false;
  static constexpr std::size_t no_other = ~std::size_t{0};
};

/// Workers of a location, or a queue.
struct Pool {
  std::size_t free = 0;
  std::set<std::pair<std::int64_t, std::size_t>>
      ready;  // by what began earlier; executions with parts to take
};

class Replay {
 public:
  Replay(const Timeline& timeline, const MessageTimes& messages, const ReplayOptions& options)
      : timeline_(timeline), messages_(messages), options_(options) {
    std::tie(first_, last_) = timeline.iterations();
    window_ = timeline.iterations_in_progress();
    for (std::size_t rank = 0; rank < timeline.ranks().size(); ++rank) collect(rank);
    connect();
  }

  double run() {
    if (last_ <= first_ || !has_dependencies_) return 0;
    for (std::int64_t iteration = first_; iteration < first_ + window_; ++iteration) admit(iteration);
    while (!ends_.empty()) {
      const auto [time, execution, pool] = ends_.top();
      ends_.pop();
      now_ = time;
      if (--executions_[execution].parts_left == 0) complete(execution);
      if (pool == Execution::no_other) continue;
      ++pools_[pool].free;
      serve(pool);
    }
    if (!finished_.contains(first_) || !finished_.contains(last_)) return 0;
    return static_cast<double>(finished_[last_] - finished_[first_]) / static_cast<double>(last_ - first_);
  }

 private:
  std::int64_t scaled(EventId id) const {
    const std::int64_t start = timeline_.start(id);
    const std::int64_t end = timeline_.event(id).end;
    const Use use = timeline_.use(id);
    if (use == Use::transfer) return scaled_message(id, start, end);
    const double factor = use == Use::compute ? options_.compute
                          : use == Use::data  ? options_.data
                          : use == Use::copy  ? options_.copy
                                              : 1;
    return std::llround(static_cast<double>(end - start) * factor);
  }

  std::int64_t scaled_message(EventId id, std::int64_t start, std::int64_t end) const {
    const MessageTime time = messages_.of(id, start, end);
    const double scaled = static_cast<double>(time.rate) * options_.rate +
                          static_cast<double>(time.messages) * options_.messages +
                          static_cast<double>(time.latency) * options_.latency +
                          static_cast<double>(time.waiting);
    return std::llround(scaled * options_.transfer);
  }

  /// The pool of an event: all workers that ran operators of a location, or its own track.
  std::size_t pool_of(std::size_t rank, const OperatorEvent& event) {
    const Trace& trace = timeline_.ranks()[rank];
    const std::string& track = trace.tracks[static_cast<std::size_t>(event.track)];
    const std::string name = track.starts_with("worker") ? trace.operators[event.op].location
                                                         : "track " + std::to_string(event.track);
    const auto [found, added] = pool_numbers_.try_emplace({rank, name}, pools_.size());
    if (added) pools_.emplace_back();
    if (tracks_.insert({found->second, event.track}).second) ++pools_[found->second].free;
    return found->second;
  }

  void collect(std::size_t rank) {
    const Trace& trace = timeline_.ranks()[rank];
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
      const OperatorEvent& event = trace.events[i];
      if (event.iteration < first_ || event.iteration > last_) continue;
      const auto [found, added] = numbers_.try_emplace({rank, event.op, event.iteration}, executions_.size());
      if (added) executions_.emplace_back();
      Execution& execution = executions_[found->second];
      const std::int64_t start = timeline_.start({rank, i});
      if (added) {
        execution.rank = rank;
        execution.iteration = event.iteration;
        execution.pool = pool_of(rank, event);
        execution.began = start;
        ++left_[event.iteration];
      } else {
        pool_of(rank, event);
        execution.began = std::min(execution.began, start);
      }
      execution.parts.push_back(scaled({rank, i}));
      ++execution.parts_left;
    }
  }

  void connect() {
    for (const auto& [name, number] : numbers_) {
      const auto& [rank, op, iteration] = name;
      const OperatorLabel& label = timeline_.ranks()[rank].operators[op];
      Execution& execution = executions_[number];
      execution.waits_for = 1;  // the admission
      for (const Dependency& each : label.after) {
        const auto needed = numbers_.find({rank, each.op, iteration - each.tokens});
        if (needed == numbers_.end()) continue;
        has_dependencies_ = true;
        ++execution.waits_for;
        executions_[needed->second].releases.push_back(number);
      }
      if (!label.exchange) continue;
      execution.sends = label.exchange->sends;
      const auto last = timeline_.last_part(rank, op, iteration);
      const auto other = timeline_.other_end(*last);
      if (!other) continue;
      const OperatorEvent& event = timeline_.event(*other);
      const auto found = numbers_.find({other->rank, event.op, event.iteration});
      if (found != numbers_.end()) execution.other_end = found->second;
    }
  }

  void admit(std::int64_t iteration) {
    for (const auto& [name, number] : numbers_) {
      if (std::get<2>(name) == iteration) release(number);
    }
  }

  void release(std::size_t number) {
    Execution& execution = executions_[number];
    if (--execution.waits_for > 0) return;
    if (execution.other_end != Execution::no_other) {
      const std::size_t receive = execution.sends ? execution.other_end : number;
      if (executions_[execution.other_end].waits_for > 0) return;  // it begins the message when it is ready
      ends_.emplace(now_ + executions_[receive].parts.front(), receive, Execution::no_other);
      return;
    }
    Pool& pool = pools_[execution.pool];
    pool.ready.emplace(execution.began, number);
    serve(execution.pool);
  }

  void serve(std::size_t number) {
    Pool& pool = pools_[number];
    while (pool.free > 0 && !pool.ready.empty()) {
      const std::size_t taken = pool.ready.begin()->second;
      Execution& execution = executions_[taken];
      ends_.emplace(now_ + execution.parts.back(), taken, number);
      execution.parts.pop_back();
      if (execution.parts.empty()) pool.ready.erase(pool.ready.begin());
      --pool.free;
    }
  }

  void complete(std::size_t number) {
    const Execution& execution = executions_[number];
    if (execution.other_end != Execution::no_other && !execution.sends) complete_one(execution.other_end);
    complete_one(number);
  }

  void complete_one(std::size_t number) {
    const Execution& execution = executions_[number];
    for (const std::size_t each : execution.releases) release(each);
    if (--left_[execution.iteration] > 0) return;
    finished_[execution.iteration] = now_;
    admit(execution.iteration + window_);
  }

  const Timeline& timeline_;
  const MessageTimes& messages_;
  const ReplayOptions options_;
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  std::int64_t window_ = 1;
  bool has_dependencies_ = false;
  std::map<std::tuple<std::size_t, std::uint32_t, std::int64_t>, std::size_t> numbers_;
  std::vector<Execution> executions_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> pool_numbers_;
  std::set<std::pair<std::size_t, std::int32_t>> tracks_;
  std::vector<Pool> pools_;
  std::map<std::int64_t, std::size_t> left_;  // executions of an iteration that are not done
  std::map<std::int64_t, std::int64_t> finished_;
  using End = std::tuple<std::int64_t, std::size_t, std::size_t>;  // time, execution, pool
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::int64_t now_ = 0;
};

}  // namespace

double replayed_step(const Timeline& timeline, const MessageTimes& messages, const ReplayOptions& options) {
  return Replay(timeline, messages, options).run();
}

}  // namespace purine::trace
