#include "purine/trace/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "purine/core/amount_text.h"
#include "purine/trace/replay.h"

namespace purine::trace {
namespace {

constexpr std::size_t most_causes = 3;
constexpr double least_share = 0.01;          // of a step: less is no cause
constexpr double largest_replay_error = 0.1;  // of a step: beyond, what a replay says is not told
constexpr double least_imbalance = 0.05;      // of a step
constexpr double least_part = 0.2;            // of what is transferred: less of it is not told

double seconds(double nanoseconds) {
  return nanoseconds / 1e9;
}

std::string milliseconds_text(double of_seconds) {
  const double value = 1000 * of_seconds;
  return value >= 100 ? fmt::format("{:.0f} ms", value)
         : value >= 1 ? fmt::format("{:.1f} ms", value)
                      : fmt::format("{:.0f} us", 1000 * value);
}

/// The length of the union of intervals.
std::int64_t covered(std::vector<std::pair<std::int64_t, std::int64_t>> intervals) {
  std::ranges::sort(intervals);
  std::int64_t length = 0;
  std::int64_t until = std::numeric_limits<std::int64_t>::min();
  for (const auto& [begin, end] : intervals) {
    length += std::max<std::int64_t>(0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return length;
}

class Explainer {
 public:
  Explainer(const Timeline& timeline, const CriticalPath& path, const ExplainOptions& options)
      : timeline_(timeline), path_(path), options_(options), messages_(timeline, options.network) {}

  Explanation run() {
    for (const Trace& trace : timeline_.ranks()) {
      explanation_.dropped += trace.dropped;
      for (const OperatorLabel& label : trace.operators) {
        explanation_.has_dependencies = explanation_.has_dependencies || !label.after.empty();
      }
    }
    if (path_.end <= path_.begin) return explanation_;
    explanation_.steps = path_.steps;
    explanation_.step_seconds = seconds(path_.step_time());
    add_shares();
    add_transfers();
    add_ranks();
    add_causes();
    if (options_.replay) add_what_ifs();
    return explanation_;
  }

 private:
  using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

  PathShare share(std::string what, std::int64_t time, std::size_t stretches) const {
    const double a_step = static_cast<double>(time) / static_cast<double>(path_.steps);
    return {std::move(what), seconds(a_step), a_step / path_.step_time(), stretches};
  }

  void add_shares() {
    std::map<Use, std::pair<std::int64_t, std::size_t>> uses;
    std::map<std::string, std::pair<std::int64_t, std::size_t>> types;
    for (const Stretch& stretch : path_.stretches) {
      const std::int64_t time = stretch.end - stretch.begin;
      uses[stretch.use].first += time;
      ++uses[stretch.use].second;
      if (stretch.use != Use::compute) continue;
      auto& type = types[timeline_.label(stretch.event).type];
      type.first += time;
      ++type.second;
    }
    for (const Use use : {Use::compute, Use::data, Use::copy, Use::transfer, Use::idle}) {
      explanation_.uses.push_back(share(use_name(use), uses[use].first, uses[use].second));
    }
    for (const auto& [type, total] : types) {
      explanation_.operators.push_back(share(type, total.first, total.second));
    }
    std::ranges::stable_sort(explanation_.operators, std::greater(), &PathShare::seconds);
  }

  void add_transfers() {
    if (!messages_.are_known()) return;
    MessageTime all;
    std::size_t stretches = 0;
    for (const Stretch& stretch : path_.stretches) {
      if (stretch.use != Use::transfer) continue;
      const MessageTime time = messages_.of(stretch.event, stretch.begin, stretch.end);
      all.rate += time.rate;
      all.messages += time.messages;
      all.latency += time.latency;
      all.waiting += time.waiting;
      ++stretches;
    }
    if (stretches == 0) return;
    explanation_.transfers = {share("rate", all.rate, stretches), share("messages", all.messages, stretches),
                              share("latency", all.latency, stretches),
                              share("waiting", all.waiting, stretches)};
  }

  void add_ranks() {
    const auto time = static_cast<double>(path_.end - path_.begin);
    for (std::size_t rank = 0; rank < timeline_.ranks().size(); ++rank) {
      const Trace& trace = timeline_.ranks()[rank];
      RankUse use;
      use.rank = trace.rank;
      for (const auto& [name, value] : trace.about) {
        if (name == "host") use.host = value;
      }
      std::vector<Intervals> tracks(trace.tracks.size());
      Intervals computing;
      Intervals moving;
      for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const EventId id{rank, i};
        const std::int64_t begin = std::max(timeline_.start(id), path_.begin);
        const std::int64_t end = std::min(trace.events[i].end, path_.end);
        if (begin >= end) continue;
        if (timeline_.use(id) == Use::transfer) {
          moving.emplace_back(begin, end);
        } else if (const auto track = static_cast<std::size_t>(trace.events[i].track);
                   timeline_.computes()[rank][track] != 0) {
          tracks[track].emplace_back(begin, end);
          computing.emplace_back(begin, end);
        }
      }
      std::int64_t busy = 0;
      for (std::size_t track = 0; track < tracks.size(); ++track) {
        use.tracks += timeline_.computes()[rank][track] != 0 ? 1 : 0;
        std::ranges::sort(tracks[track]);
        busy += covered(tracks[track]);
      }
      busy_.push_back(std::move(tracks));
      if (use.tracks > 0) use.busy = static_cast<double>(busy) / time / static_cast<double>(use.tracks);
      const std::int64_t any_computing = covered(computing);
      use.computing = static_cast<double>(any_computing) / time;
      use.transfers = static_cast<double>(covered(moving)) / time;
      computing.insert(computing.end(), moving.begin(), moving.end());
      use.exposed = static_cast<double>(covered(std::move(computing)) - any_computing) / time;
      std::int64_t on_path = 0;
      for (const Stretch& stretch : path_.stretches) {
        if (stretch.event.rank == rank) on_path += stretch.end - stretch.begin;
      }
      use.on_path = static_cast<double>(on_path) / time;
      explanation_.ranks.push_back(use);
    }
  }

  // A replay leaves something out: what it says of a change is taken as a share of what it says without.
  void add_what_ifs() {
    const double replayed = replayed_step(timeline_, messages_, {});
    explanation_.replayed_seconds = seconds(replayed);
    if (!(std::abs(replayed - path_.step_time()) < largest_replay_error * path_.step_time())) return;
    const auto add = [&](const std::string& what, const ReplayOptions& options) {
      const double share = replayed_step(timeline_, messages_, options) / replayed;
      explanation_.what_ifs.push_back({what, share * explanation_.step_seconds});
    };
    add("devices twice as fast", {.compute = 0.5});
    if (timeline_.ranks().size() > 1) {
      if (messages_.are_known()) {
        add("links of twice the rate", {.rate = 0.5});
        if (part_share("messages") > least_share) add("messages at half the cost", {.messages = 0.5});
        add("links of half the latency", {.latency = 0.5});
      } else {
        add("network twice as fast", {.transfer = 0.5});
      }
      add("network infinitely fast", {.transfer = 0});
    }
    if (use_share(Use::copy) > least_share) add("copies twice as fast", {.copy = 0.5});
    if (use_share(Use::data) > least_share) add("images brought in twice as fast", {.data = 0.5});
  }

  double use_share(Use use) const {
    return std::ranges::find(explanation_.uses, use_name(use), &PathShare::what)->share;
  }

  /// The share of a step that is due to a part of what is transferred on the path.
  double part_share(std::string_view part) const {
    const auto found = std::ranges::find(explanation_.transfers, part, &PathShare::what);
    return found == explanation_.transfers.end() ? 0 : found->share;
  }

  // Causes.

  void add_causes() {
    for (const PathShare& type : explanation_.operators) add(type, compute_cause(type));
    for (const PathShare& use : explanation_.uses) {
      if (use.what == use_name(Use::data)) add(use, data_cause());
      if (use.what == use_name(Use::copy)) add(use, copy_cause());
      if (use.what == use_name(Use::transfer)) add(use, transfer_cause());
      if (use.what == use_name(Use::idle)) add(use, idle_cause(use));
    }
    add_imbalance();
    std::ranges::stable_sort(explanation_.causes, std::greater(), &Cause::seconds);
    if (explanation_.causes.size() > most_causes) explanation_.causes.resize(most_causes);
  }

  /// A rank that computes for longer than the others, who then wait for it.
  void add_imbalance() {
    if (explanation_.ranks.size() < 2) return;
    const RankUse& busiest = std::ranges::max(explanation_.ranks, {}, &RankUse::busy);
    double others = 0;
    for (const RankUse& rank : explanation_.ranks) others += rank.busy;
    others = (others - busiest.busy) / static_cast<double>(explanation_.ranks.size() - 1);
    PathShare share{"imbalance", 0, busiest.busy - others, 0};
    if (share.share < least_imbalance || busiest.on_path < 0.5) return;
    share.seconds = share.share * explanation_.step_seconds;
    add(share,
        {fmt::format("rank {}{} computes for {:.0f}% of the time and the others for {:.0f}%, waiting for it",
                     busiest.rank, busiest.host.empty() ? "" : " at " + busiest.host, 100 * busiest.busy,
                     100 * others),
         "give it a smaller share, or a device as fast as the others'; ranks of one host must not share "
         "cores"});
  }

  void add(const PathShare& share, std::pair<std::string, std::string> words) {
    if (share.share < least_share) return;
    const std::string text = fmt::format("{:.1f}% of a step, {}: {}", 100 * share.share,
                                         milliseconds_text(share.seconds), words.first);
    explanation_.causes.push_back({share.what, share.seconds, share.share, text, std::move(words.second)});
  }

  /// The operator that holds the most of the path among those that are chosen, as ` (most in PATH, 12 ms)`.
  template <typename Chosen>
  std::string most_in(Chosen&& chosen) const {
    std::map<std::string, std::int64_t> times;
    for (const Stretch& stretch : path_.stretches) {
      if (chosen(stretch)) times[timeline_.label(stretch.event).path] += stretch.end - stretch.begin;
    }
    if (times.empty()) return "";
    const auto most = std::ranges::max_element(times, {}, [](const auto& each) { return each.second; });
    return fmt::format(
        "most in {}, {}", most->first,
        milliseconds_text(seconds(static_cast<double>(most->second) / static_cast<double>(path_.steps))));
  }

  double busy_share() const {
    double busy = 0;
    double tracks = 0;
    for (const RankUse& rank : explanation_.ranks) {
      busy += rank.busy * static_cast<double>(rank.tracks);
      tracks += static_cast<double>(rank.tracks);
    }
    return tracks > 0 ? busy / tracks : 0;
  }

  /// How busy the other workers of its rank are while the path is at an operator of a type; 1 if there are
  /// none.
  double others_busy(const std::string& type) const {
    std::int64_t possible = 0;
    std::int64_t busy = 0;
    for (const Stretch& stretch : path_.stretches) {
      if (stretch.use != Use::compute || timeline_.label(stretch.event).type != type) continue;
      const std::size_t rank = stretch.event.rank;
      const auto own = static_cast<std::size_t>(timeline_.event(stretch.event).track);
      for (std::size_t track = 0; track < busy_[rank].size(); ++track) {
        if (track == own || timeline_.computes()[rank][track] == 0) continue;
        possible += stretch.end - stretch.begin;
        const Intervals& intervals = busy_[rank][track];
        auto each = std::ranges::lower_bound(intervals, stretch.begin, {}, &Intervals::value_type::second);
        for (; each != intervals.end() && each->first < stretch.end; ++each) {
          busy += std::min(each->second, stretch.end) - std::max(each->first, stretch.begin);
        }
      }
    }
    return possible > 0 ? static_cast<double>(busy) / static_cast<double>(possible) : 1;
  }

  std::pair<std::string, std::string> compute_cause(const PathShare& type) const {
    double operations = 0;
    double bytes = 0;
    std::int64_t time = 0;
    for (std::size_t rank = 0; rank < timeline_.ranks().size(); ++rank) {
      const Trace& trace = timeline_.ranks()[rank];
      for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const OperatorLabel& label = timeline_.label({rank, i});
        if (label.type != type.what) continue;
        time += trace.events[i].end - timeline_.start({rank, i});
        if (timeline_.last_part(rank, trace.events[i].op, trace.events[i].iteration) != EventId{rank, i})
          continue;
        operations += label.operations;
        bytes += label.bytes;
      }
    }
    std::string text = fmt::format("computing {}", type.what);
    const bool by_operations = operations > 8 * bytes;
    if (time > 0 && operations > 0) {
      const double length = seconds(static_cast<double>(time));
      text += by_operations ? fmt::format(" at {:.1f} Gflop/s a worker", operations / length / 1e9)
                            : fmt::format(" at {:.1f} GB/s a worker", bytes / length / 1e9);
    }
    text += "; " + most_in([&](const Stretch& stretch) {
              return stretch.use == Use::compute && timeline_.label(stretch.event).type == type.what;
            });
    const double busy = busy_share();
    std::string hint;
    const double others = others_busy(type.what);
    if (others < 0.5) {
      text += fmt::format("; the other workers are busy {:.0f}% of this time", 100 * others);
      hint =
          "such an operator has too few parts to share, or all else waits for it: a larger batch gives it "
          "more, unless it works on weights alone";
    } else if (busy < 0.8) {
      hint = fmt::format(
          "workers and devices are busy {:.0f}% of the time, so the chain of operators is what counts: a "
          "larger batch gives each of them more to share",
          100 * busy);
    } else if (by_operations) {
      hint = fmt::format(
          "workers and devices are busy {:.0f}% of the time: only more or faster ones help, or a smaller "
          "network",
          100 * busy);
    } else {
      hint =
          "it moves more than it computes: memory bandwidth counts, and workers beyond what that feeds don't";
    }
    return {text, hint};
  }

  std::pair<std::string, std::string> data_cause() const {
    return {
        "reading and preparing images; " +
            most_in([](const Stretch& stretch) { return stretch.use == Use::data; }),
        "more workers prepare more images at a time; smaller images, or ones that are decoded and resized "
        "beforehand, need less of them"};
  }

  std::pair<std::string, std::string> copy_cause() const {
    return {"copying between devices; " +
                most_in([](const Stretch& stretch) { return stretch.use == Use::copy; }),
            "a scheme that moves less between these devices, or a larger batch, hides it better"};
  }

  std::pair<std::string, std::string> transfer_cause() const {
    double bytes = 0;
    double chunks = 0;
    for (std::size_t rank = 0; rank < timeline_.ranks().size(); ++rank) {
      const Trace& trace = timeline_.ranks()[rank];
      for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const std::optional<ExchangeLabel>& exchange = timeline_.label({rank, i}).exchange;
        if (exchange && exchange->sends && trace.events[i].end > path_.begin &&
            trace.events[i].end <= path_.end) {
          bytes += static_cast<double>(exchange->bytes);
          chunks += static_cast<double>(options_.network.chunks_of(exchange->bytes));
        }
      }
    }
    const double exposed = std::ranges::max(explanation_.ranks, {}, &RankUse::exposed).exposed;
    const double moving = std::ranges::max(explanation_.ranks, {}, &RankUse::transfers).transfers;
    const auto [held_by, hint] = transfer_parts_text(bytes, chunks);
    return {fmt::format(
                "moving data between ranks{}; {} a step over all; messages are on their way {:.0f}% of the "
                "time, and {:.0f}% of the time nothing computes meanwhile; {}",
                held_by, bytes_text(static_cast<std::size_t>(bytes / static_cast<double>(path_.steps))),
                100 * moving, 100 * exposed,
                most_in([](const Stretch& stretch) { return stretch.use == Use::transfer; })),
            hint};
  }

  /// What of a network holds transfers up, and what helps against the most of it.
  std::pair<std::string, std::string> transfer_parts_text(double bytes, double chunks) const {
    const std::string for_rate =
        "a larger batch gives each byte more to hide under; the scheme `hybrid` moves fewer of them for "
        "layers with many weights and few activations; else the network must be faster";
    std::vector<PathShare> parts = explanation_.transfers;
    if (parts.empty()) return {"", for_rate};
    std::ranges::stable_sort(parts, std::greater(), &PathShare::share);
    const double all = use_share(Use::transfer);
    std::string text;
    for (const PathShare& part : parts) {
      if (part.share < least_part * all) break;
      text += fmt::format(", {:.0f}% of it {}", 100 * part.share / all, part_text(part.what, bytes, chunks));
    }
    const std::string& most = parts.front().what;
    if (most == "rate") return {text, for_rate};
    if (most == "waiting") {
      return {text,
              "a core that no worker has lets the transport look at once; a larger batch gives messages more "
              "to hide under"};
    }
    return {text,
            "fewer messages help: larger buckets (`parallel.bucket_kib`), or a scheme that sends fewer; so "
            "does a larger batch, under which they hide; links of a higher rate don't"};
  }

  std::string part_text(std::string_view part, double bytes, double chunks) const {
    if (part == "rate") {
      const double links = options_.network.slowest_link();
      const double shared = options_.network.switch_bytes_per_second;
      return fmt::format("at the rate of the links, {:.3g} Gbit/s{}", 8e-9 * links,
                         shared > 0 ? fmt::format(", and of the switch, {:.3g} for all", 8e-9 * shared) : "");
    }
    if (part == "messages") {
      const double each =
          std::ranges::max(options_.network.links, {}, &LinkSpeed::message_seconds).message_seconds;
      return fmt::format("for messages, not bytes: {} a step of {} in the mean cost {} each",
                         count_text(std::llround(chunks / static_cast<double>(path_.steps))),
                         bytes_text(static_cast<std::size_t>(bytes / std::max(1.0, chunks))),
                         milliseconds_text(each));
    }
    if (part == "latency") {
      const double each = std::ranges::max(options_.network.links, {}, &LinkSpeed::latency).latency;
      return fmt::format("latency, {} each way", milliseconds_text(each));
    }
    return "waiting for a core, or until the transport looked";
  }

  std::pair<std::string, std::string> idle_cause(const PathShare& use) const {
    std::int64_t at_window = 0;
    std::int64_t idle = 0;
    for (const Stretch& stretch : path_.stretches) {
      if (stretch.use != Use::idle) continue;
      const std::int64_t time = stretch.end - stretch.begin;
      idle += time;
      if (stretch.link == Link::window) at_window += time;
    }
    if (2 * at_window > idle) {
      return {"waiting until an iteration was over before the next could begin, with nothing else to do",
              "the host holds the loop up: do less between steps"};
    }
    const double each = use.seconds * static_cast<double>(path_.steps) /
                        static_cast<double>(std::max<std::size_t>(1, use.stretches));
    return {fmt::format("on the way from one operator to the next, {:.0f} times a step, {} each; {}",
                        static_cast<double>(use.stretches) / static_cast<double>(path_.steps),
                        milliseconds_text(each),
                        most_in([](const Stretch& stretch) { return stretch.use == Use::idle; })),
            "operators that are this short don't pay for their start: a larger batch makes them longer; "
            "where other programs use the cores, workers are woken late: take fewer of them"};
  }

  const Timeline& timeline_;
  const CriticalPath& path_;
  const ExplainOptions& options_;
  const MessageTimes messages_;
  Explanation explanation_;
  std::vector<std::vector<Intervals>> busy_;  // by rank and track: when it ran operators, in order
};

}  // namespace

std::string use_name(Use use) {
  switch (use) {
    case Use::compute:
      return "compute";
    case Use::data:
      return "data";
    case Use::copy:
      return "copy";
    case Use::transfer:
      return "transfer";
    case Use::idle:
      break;
  }
  return "idle";
}

Explanation explain(const Timeline& timeline, const CriticalPath& path, const ExplainOptions& options) {
  return Explainer(timeline, path, options).run();
}

}  // namespace purine::trace
