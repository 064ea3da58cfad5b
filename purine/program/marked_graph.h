// The marked graph that the dispatcher runs: operators, edges with tokens, lanes and priorities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace purine {

/// What an edge stands for.
enum class EdgeKind : std::uint8_t {
  order,  ///< the consumer only has to come later (credits, reuse of storage): passes no poison
  value,  ///< the consumer reads what the producer made: a poisoned producer poisons it
};

/// When an edge's token passes.
enum class EdgeTiming : std::uint8_t {
  issued,  ///< both operators are on one in-order queue: at issue, and there is nothing else to do
  event,   ///< queue to queue of one device family: at issue; the consumer's queue waits for the producer's
           ///< event
  done,    ///< when the producer is done: every edge that begins or ends on a CPU lane
};

/// An edge as it is given to the builder: `to` fires its t-th time only after `from` fired its (t -
/// tokens)-th.
struct MarkedEdge {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t tokens = 0;
  EdgeKind kind = EdgeKind::value;
  EdgeTiming timing = EdgeTiming::done;
};

/// A marked graph (Commoner, Holt, Even, Pnueli, "Marked directed graphs", 1971), immutable and flat. Firing
/// t of operator v, counted from 0, needs for each edge (u, v, d) that u has fired t - d + 1 times: d = 0 is
/// an ordinary dependency within an iteration, d = 1 reads the last iteration's value, and the credits of a
/// tensor of K slots are edges back with K - d tokens. It is live, and never deadlocks, iff its edges without
/// tokens are acyclic; the builder holds that.
///
/// An operator never overlaps itself: where that does not follow from its other edges, the builder adds an
/// edge of one token from the operator to itself.
///
/// Two numberings exist. `operator` is the caller's number, 0 … n - 1. `position` sorts the operators by
/// lane, and within a lane by priority, so that what runs together lies together; the dispatcher works on
/// positions.
class MarkedGraph {
 public:
  /// The most operators that a graph may have; the largest number of tokens on an edge.
  static constexpr std::uint32_t max_operators = 1U << 27U;
  static constexpr std::uint32_t max_tokens = 2;

  /// An outgoing edge in 4 bytes: position of the consumer, tokens, kind and timing.
  class Edge {
   public:
    Edge(std::uint32_t to, std::uint32_t tokens, EdgeKind kind, EdgeTiming timing)
        : bits_(to | tokens << 27U | static_cast<std::uint32_t>(kind) << 29U |
                static_cast<std::uint32_t>(timing) << 30U) {}
    std::uint32_t to() const { return bits_ & (max_operators - 1); }
    std::uint32_t tokens() const { return bits_ >> 27U & 3U; }
    EdgeKind kind() const { return static_cast<EdgeKind>(bits_ >> 29U & 1U); }
    EdgeTiming timing() const { return static_cast<EdgeTiming>(bits_ >> 30U); }

   private:
    std::uint32_t bits_;
  };

  /// A producer whose event the consumer's queue waits for: version t - tokens of it.
  struct EventWait {
    std::uint32_t from = 0;  ///< position
    std::uint32_t tokens = 0;
  };

  std::uint32_t operator_count() const { return static_cast<std::uint32_t>(operators_.size()); }
  std::size_t edge_count() const { return edges_.size(); }
  std::uint32_t lane_count() const { return static_cast<std::uint32_t>(lane_begins_.size() - 1); }
  /// The largest number of tokens on any edge.
  std::uint32_t largest_tokens() const { return largest_tokens_; }

  std::uint32_t position_of(std::uint32_t op) const { return positions_[op]; }
  std::uint32_t operator_at(std::uint32_t position) const { return operators_[position]; }
  /// The positions of a lane are [lane_begin(lane), lane_begin(lane + 1)).
  std::uint32_t lane_begin(std::uint32_t lane) const { return lane_begins_[lane]; }
  /// The lane of a position.
  std::uint32_t lane_at(std::uint32_t position) const;

  /// Latest start time of a position's operator in iteration 0, in seconds; in iteration t it is t * period()
  /// later. The smaller goes first; equal ones in order of (iteration, position).
  float start(std::uint32_t position) const { return starts_[position]; }
  float period() const { return period_; }

  /// Outgoing edges of a position; those that pass at issue come first.
  std::span<const Edge> edges(std::uint32_t position) const {
    return {edges_.data() + edge_begins_[position], edge_begins_[position + 1] - edge_begins_[position]};
  }
  /// How many tokens one firing of a position takes: one an entering edge, and one from the admission of the
  /// iteration if it is a source.
  std::uint32_t needs(std::uint32_t position) const { return needs_[position]; }
  /// Positions that no edge without tokens enters, ascending: what the admission of an iteration starts.
  std::span<const std::uint32_t> sources() const { return sources_; }
  /// The events that a position's queue waits for before it is issued.
  std::span<const EventWait> event_waits(std::uint32_t position) const;

  /// Bytes of all arrays.
  std::size_t bytes() const;

 private:
  friend class MarkedGraphBuilder;
  MarkedGraph() = default;

  std::vector<std::uint32_t> operators_;    // by position
  std::vector<std::uint32_t> positions_;    // by operator
  std::vector<std::uint32_t> lane_begins_;  // by lane, and the end
  std::vector<float> starts_;               // by position
  std::vector<std::uint32_t> edge_begins_;  // by position, and the end
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> needs_;  // by position
  std::vector<std::uint32_t> sources_;
  std::vector<std::uint32_t> event_begins_;  // by position, and the end; empty if there are no events
  std::vector<EventWait> event_waits_;
  float period_ = 0;
  std::uint32_t largest_tokens_ = 0;
};

/// Collects operators and edges, checks them, and numbers them by priority.
class MarkedGraphBuilder {
 public:
  explicit MarkedGraphBuilder(std::uint32_t operator_count);

  /// The lane that an operator runs on (0 by default): an index into the dispatcher's lanes.
  void set_lane(std::uint32_t op, std::uint32_t lane);
  /// Estimated seconds of one execution (0 by default), not negative.
  void set_cost(std::uint32_t op, double seconds);
  /// What goes on elsewhere after an operator, for at least so long: in the first of two iterations and the
  /// second, and in the second alone (both 0 by default).
  void set_remaining(std::uint32_t op, double in_first, double in_second);
  /// The operator needs the line, which such operators have one after the other: what a rank sends.
  void set_on_line(std::uint32_t op);
  /// Operators take turns by when they can start at the earliest, in place of how late they may: as where
  /// there are no priorities.
  void set_first_come_first_served() { first_come_first_served_ = true; }
  /// How many operators of a lane run at the same time (1 by default): bounds the iteration's period from
  /// below.
  void set_parallelism(std::uint32_t lane, int operators);
  /// Edges of equal ends and tokens become one that keeps the stricter kind and timing.
  void add_edge(const MarkedEdge& edge);
  std::span<const MarkedEdge> edges() const { return edges_; }

  /// Checks that the edges without tokens are acyclic and makes the graph. Otherwise throws Error that names
  /// a cycle by `path(operator)`.
  ///
  /// Priorities are latest start times over two iterations: with tail(v, 1) = cost(v) + the largest tail(w,
  /// 1) over edges (v, w, 0), and tail(v, 0) = cost(v) + the largest of tail(w, 0) over edges (v, w, 0) and
  /// tail(w, 1) over edges (v, w, 1), and at least what remains elsewhere, v starts at max(tail(·, 0)) -
  /// tail(v, 0); ties by operator. The period is what the second iteration adds to the critical path,
  /// max(tail(·, 0)) - max(tail(·, 1)), but at least the load of the busiest lane divided by its parallelism.
  /// Example: costs a = 1, b = 2, edges (a, b, 0) and (b, a, 1): tail(b, 1) = 2, tail(a, 1) = 3, tail(b, 0) =
  /// 5, tail(a, 0) = 6; a starts at 0, b at 1, the period is 3.
  ///
  /// Operators on the line go one after the other, and those that can go by these tails. What makes them
  /// ready must see more: that all others follow there. So for all operators but those on the line, the tail
  /// of one that is on it is cost(v) + at least the tail, of this kind, of the next one there, in the order
  /// of their earliest starts. Of many gradients that are sent, all are then computed in the order in which
  /// they can be, so that the line begins early, though the update behind the last one is needed first.
  MarkedGraph build(const std::function<std::string(std::uint32_t)>& path) const;

 private:
  std::uint32_t operator_count_;
  std::vector<std::uint32_t> lanes_;
  std::vector<double> costs_;
  std::vector<double> remaining_in_first_;
  std::vector<double> remaining_in_second_;
  std::vector<bool> on_line_;
  bool first_come_first_served_ = false;
  std::vector<int> parallelism_;
  std::vector<MarkedEdge> edges_;
};

}  // namespace purine
