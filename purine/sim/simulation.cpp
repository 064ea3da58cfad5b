#include "purine/sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "purine/core/amount_text.h"
#include "purine/core/error.h"
#include "purine/program/whole_graph.h"
#include "purine/sim/simulated_rank.h"
#include "purine/trace/operators_of.h"

namespace purine::sim {
namespace {

using WallClock = std::chrono::steady_clock;

double seconds_since(WallClock::time_point begin) {
  return std::chrono::duration<double>(WallClock::now() - begin).count();
}

// Collects what runs at a rank, as a run that is traced does.
class Recording {
 public:
  Recording(SimulatedRank& rank, const std::string& host, std::int64_t first, std::int64_t end)
      : program_(rank.program()), first_(first), end_(end) {
    trace_.rank = rank.rank();
    trace_.operators = trace::operators_of(program_);
    trace_.memory = trace::memory_of(program_);
    trace_.about = {{"host", host}};
    rank.record([this](const Execution& execution) {
      if (execution.iteration >= first_ && execution.iteration < end_) add(execution);
    });
  }

  trace::Trace take() {
    trace_.sort();
    return std::move(trace_);
  }

 private:
  static std::string_view name_of(LaneKind kind) {
    switch (kind) {
      case LaneKind::copy_in:
        return "copies in";
      case LaneKind::copy_out:
        return "copies out";
      case LaneKind::peer:
        return "copies from peers";
      default:
        return "kernels";
    }
  }

  void add(const Execution& execution) {
    std::int64_t begin = execution.begin;
    const LaneUse& lane = program_.lanes()[execution.lane];
    int track = 0;
    if (lane.kind != LaneKind::network) {
      track =
          track_of(execution.worker >= 0 ? fmt::format("worker {}", execution.worker)
                                         : fmt::format("{} {}", lane.location.text(), name_of(lane.kind)));
      // A queue is in order: what it was given early began when the one before had ended.
      std::int64_t& last_end = last_ends_[track];
      begin = std::max(begin, last_end);
      last_end = execution.end;
    } else if (program_.exchange(execution.op, 0).sends) {
      track = free_track(begin, execution.end);
    } else {
      track = track_of("receives");
    }
    trace_.events.push_back({execution.op, execution.part, track, execution.iteration, begin, execution.end});
  }

  int track_of(const std::string& name) {
    const auto [found, inserted] = tracks_.try_emplace(name, static_cast<int>(trace_.tracks.size()));
    if (inserted) trace_.tracks.push_back(name);
    return found->second;
  }

  // Sends overlap one another, and are told when they end: each goes to a track on which nothing has gone on
  // since it began.
  int free_track(std::int64_t begin, std::int64_t end) {
    for (int number = 0;; ++number) {
      const int track = track_of(fmt::format("sends {}", number));
      std::int64_t& last_end = last_ends_[track];
      if (last_end > begin) continue;
      last_end = end;
      return track;
    }
  }

  const Program& program_;
  const std::int64_t first_;
  const std::int64_t end_;
  trace::Trace trace_;
  std::map<std::string, int> tracks_;
  std::map<int, std::int64_t> last_ends_;
};

void check_locations(Graph& graph, const Cluster& cluster) {
  const auto check = [&](Location location) {
    if (cluster.has(location)) return;
    throw Error("cluster", fmt::format("has no device {}", location.text()),
                fmt::format("{} has {}", cluster.name, counted_text(cluster.hosts.size(), "host")));
  };
  std::set<Location> seen;
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    const Location location = graph.op(i).location();
    if (seen.insert(location).second) check(location);
  }
}

class Run {
 public:
  Run(Graph& graph, const Cluster& cluster, const SimulationOptions& options)
      : options_(options),
        cluster_(cluster),
        end_(options.warm_up + options.steps + 1),
        network_(time_, cards(cluster),
                 {cluster.network_switch.bytes_per_second, cluster.network_switch.latency}) {
    PURINE_CHECK(options.warm_up >= 0 && options.steps >= 1);
    const WallClock::time_point begin = WallClock::now();
    check_locations(graph, cluster);
    whole_.emplace(graph);
    const net::Pace pace = net::pace_of(network_speed(cluster).slowest_link());
    for (std::int32_t rank = 0; rank < whole_->ranks(); ++rank) {
      ranks_.push_back(std::make_unique<SimulatedRank>(
          SimulatedRank::Shared{time_, network_, *whole_, cluster, options_, pace, active_}, rank));
      tell("freezing", rank + 1, whole_->ranks());
    }
    finished_.resize(ranks_.size(), 0);
    waiting_for_.resize(static_cast<std::size_t>(end_), ranks_.size());
    result_.freeze_seconds = seconds_since(begin);
  }

  SimulationResult go() {
    begin_ = WallClock::now();
    std::deque<Recording> recordings;  // their ranks call them
    const bool traces = is_to_be_traced();
    for (const auto& rank : ranks_) {
      if (traces) {
        const Host& host = cluster_.hosts[static_cast<std::size_t>(rank->rank())];
        recordings.emplace_back(*rank, host.cpu.name, options_.warm_up, options_.warm_up + options_.steps);
      }
      rank->dispatcher().admit(options_.barrier ? 1 : end_);
      rank->something_completed();
    }
    do {
      while (!active_.empty()) {
        SimulatedRank& rank = *active_.back();
        active_.pop_back();
        rank.proceed();
        note_finished(rank);
      }
    } while (time_.advance());
    check_finished();
    const std::vector<double>& finished = result_.finished_at;
    const double first = options_.warm_up > 0 ? finished[static_cast<std::size_t>(options_.warm_up - 1)] : 0;
    const double last = finished[static_cast<std::size_t>(options_.warm_up + options_.steps - 1)];
    result_.step_seconds = (last - first) / static_cast<double>(options_.steps);
    for (Recording& recording : recordings) result_.traces.push_back(recording.take());
    const Progress end = progress();
    result_.simulate_seconds = end.seconds;
    result_.executions = end.executions;
    result_.execution_seconds = {
        halfway_.seconds / static_cast<double>(halfway_.executions),
        (end.seconds - halfway_.seconds) / static_cast<double>(end.executions - halfway_.executions)};
    return std::move(result_);
  }

 private:
  static std::vector<CardOptions> cards(const Cluster& cluster) {
    std::vector<CardOptions> options;
    for (const Host& host : cluster.hosts) {
      options.push_back({host.card.bytes_per_second, host.card.latency, host.card.message_seconds,
                         host.card.burst_bytes, host.card.core_seconds_per_byte,
                         host.card.core_seconds_per_message, host.card.buffer_bytes});
    }
    return options;
  }

  struct Progress {
    double seconds = 0;  // of real time
    std::uint64_t executions = 0;
  };

  Progress progress() const {
    Progress now{.seconds = seconds_since(begin_)};
    for (const auto& rank : ranks_) now.executions += rank->executions();
    return now;
  }

  bool is_to_be_traced() const {
    std::size_t operators = 0;
    for (const auto& rank : ranks_) operators += rank->program().operator_count();
    return options_.trace && operators * static_cast<std::size_t>(options_.steps) <= options_.most_traced;
  }

  void tell(std::string_view what, std::int64_t done, std::int64_t total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  void note_finished(SimulatedRank& rank) {
    std::int64_t& finished = finished_[static_cast<std::size_t>(rank.rank())];
    for (const std::int64_t now = rank.dispatcher().finished(); finished < now; ++finished) {
      if (--waiting_for_[static_cast<std::size_t>(finished)] == 0) iteration_finished(finished);
      tell("simulating", ++finished_in_all_, end_ * static_cast<std::int64_t>(ranks_.size()));
    }
  }

  void iteration_finished(std::int64_t iteration) {
    result_.finished_at.push_back(static_cast<double>(time_.now()) * 1e-9);
    if (iteration + 1 == end_ / 2) halfway_ = progress();
    if (iteration == options_.warm_up - 1) {
      for (const auto& rank : ranks_) rank->reset_meters();
    }
    if (iteration == options_.warm_up + options_.steps - 1) {
      for (const auto& rank : ranks_) rank->add_results(result_);
      result_.messages /= options_.steps;
      result_.bytes_sent /= options_.steps;
    }
    if (!options_.barrier || iteration + 1 >= end_) return;
    for (const auto& rank : ranks_) {
      rank->dispatcher().admit(iteration + 2);
      rank->something_completed();
    }
  }

  void check_finished() {
    for (const auto& rank : ranks_) {
      if (const std::optional<Failure> failure = rank->dispatcher().failure()) {
        std::rethrow_exception(failure->cause);
      }
    }
    if (result_.finished_at.size() == static_cast<std::size_t>(end_)) return;
    std::string text;
    for (const auto& rank : ranks_) {
      text +=
          rank->dispatcher().describe_unfinished([&](std::uint32_t op) { return rank->program().path(op); });
    }
    throw Error("simulation", "has stalled; under way: " + text);
  }

  const SimulationOptions options_;
  const Cluster& cluster_;
  const std::int64_t end_;  // of the iterations
  VirtualTime time_;
  Network network_;
  std::optional<program::WholeGraph> whole_;
  std::vector<SimulatedRank*> active_;
  std::vector<std::unique_ptr<SimulatedRank>> ranks_;
  std::vector<std::int64_t> finished_;    // iterations, by rank
  std::vector<std::size_t> waiting_for_;  // by iteration: ranks that have not finished it
  std::int64_t finished_in_all_ = 0;      // iterations of all ranks
  WallClock::time_point begin_;           // of the simulation
  Progress halfway_;                      // through the iterations
  SimulationResult result_;
};

}  // namespace

SimulationResult simulate(Graph& graph, const Cluster& cluster, const SimulationOptions& options) {
  return Run(graph, cluster, options).go();
}

}  // namespace purine::sim
