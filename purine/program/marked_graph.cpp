#include "purine/program/marked_graph.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "purine/core/error.h"

namespace purine {
namespace {

constexpr std::uint32_t unreached = std::numeric_limits<std::uint32_t>::max();

// Edges grouped by one of their ends.
struct Adjacency {
  std::vector<std::uint32_t> begins;  // by operator, and the end
  std::vector<MarkedEdge> edges;

  std::span<const MarkedEdge> of(std::uint32_t op) const {
    return {edges.data() + begins[op], begins[op + 1] - begins[op]};
  }
};

Adjacency group(std::uint32_t operator_count, std::span<const MarkedEdge> edges,
                std::uint32_t MarkedEdge::*end) {
  Adjacency result;
  result.begins.assign(operator_count + 1, 0);
  for (const MarkedEdge& edge : edges) ++result.begins[edge.*end + 1];
  std::partial_sum(result.begins.begin(), result.begins.end(), result.begins.begin());
  result.edges.resize(edges.size());
  std::vector<std::uint32_t> next(result.begins.begin(), result.begins.end() - 1);
  for (const MarkedEdge& edge : edges) result.edges[next[edge.*end]++] = edge;
  return result;
}

// Sorts by (from, to, tokens) and makes one of equal edges, with the stricter kind and timing.
std::vector<MarkedEdge> merge_equal(std::uint32_t operator_count, std::span<const MarkedEdge> edges) {
  Adjacency outgoing = group(operator_count, edges, &MarkedEdge::from);
  std::vector<MarkedEdge> merged;
  merged.reserve(edges.size());
  for (std::uint32_t op = 0; op < operator_count; ++op) {
    const auto first = outgoing.edges.begin() + outgoing.begins[op];
    const auto last = outgoing.edges.begin() + outgoing.begins[op + 1];
    std::sort(first, last, [](const MarkedEdge& a, const MarkedEdge& b) {
      return a.to != b.to ? a.to < b.to : a.tokens < b.tokens;
    });
    for (auto edge = first; edge != last; ++edge) {
      if (edge != first && merged.back().to == edge->to && merged.back().tokens == edge->tokens) {
        merged.back().kind = std::max(merged.back().kind, edge->kind);
        merged.back().timing = std::max(merged.back().timing, edge->timing);
      } else {
        merged.push_back(*edge);
      }
    }
  }
  return merged;
}

[[noreturn]] void throw_cycle(const Adjacency& incoming, const std::vector<std::uint32_t>& unmet,
                              const std::function<std::string(std::uint32_t)>& path) {
  // Every operator that is left has a predecessor that is left: walking back must come around.
  std::vector<bool> seen(unmet.size(), false);
  auto op = static_cast<std::uint32_t>(
      std::find_if(unmet.begin(), unmet.end(), [](std::uint32_t count) { return count != 0; }) -
      unmet.begin());
  std::vector<std::uint32_t> walk;
  while (!seen[op]) {
    seen[op] = true;
    walk.push_back(op);
    for (const MarkedEdge& edge : incoming.of(op)) {
      if (edge.tokens == 0 && unmet[edge.from] != 0) {
        op = edge.from;
        break;
      }
    }
  }
  std::vector<std::uint32_t> cycle(std::find(walk.begin(), walk.end(), op), walk.end());
  std::reverse(cycle.begin(), cycle.end());
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  constexpr std::size_t shown = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(cycle.size(), shown); ++i) text += path(cycle[i]) + " -> ";
  if (cycle.size() > shown) text += "(" + std::to_string(cycle.size() - shown) + " more) -> ";
  throw Error("program", "operators wait for each other within an iteration: " + text + path(cycle[0]),
              "an edge of the cycle must hold a token (a value of the last iteration, or a free slot)");
}

// Operators in an order that all edges without tokens follow.
std::vector<std::uint32_t> topological_order(std::uint32_t operator_count, const Adjacency& outgoing,
                                             std::span<const MarkedEdge> edges,
                                             const std::function<std::string(std::uint32_t)>& path) {
  std::vector<std::uint32_t> unmet(operator_count, 0);
  for (const MarkedEdge& edge : edges) unmet[edge.to] += edge.tokens == 0 ? 1U : 0U;
  std::vector<std::uint32_t> order;
  order.reserve(operator_count);
  for (std::uint32_t op = 0; op < operator_count; ++op) {
    if (unmet[op] == 0) order.push_back(op);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const MarkedEdge& edge : outgoing.of(order[i])) {
      if (edge.tokens == 0 && --unmet[edge.to] == 0) order.push_back(edge.to);
    }
  }
  if (order.size() != operator_count) {
    throw_cycle(group(operator_count, edges, &MarkedEdge::to), unmet, path);
  }
  return order;
}

// Adds an edge of one token from an operator to itself where no cycle of two edges with one token implies it.
void keep_from_overlapping_itself(std::uint32_t operator_count, std::vector<MarkedEdge>& edges) {
  const Adjacency outgoing = group(operator_count, edges, &MarkedEdge::from);
  const Adjacency incoming = group(operator_count, edges, &MarkedEdge::to);
  // Of the edges from the operator at hand to another: the tokens of the one with the fewest.
  std::vector<std::uint32_t> reached_by(operator_count, unreached);
  std::vector<std::uint32_t> tokens_to(operator_count, 0);
  for (std::uint32_t op = 0; op < operator_count; ++op) {
    for (const MarkedEdge& edge : outgoing.of(op)) {
      if (reached_by[edge.to] == op) continue;  // sorted: the first one has the fewest
      reached_by[edge.to] = op;
      tokens_to[edge.to] = edge.tokens;
    }
    const auto implied = [&](const MarkedEdge& edge) {
      if (edge.from == op) return edge.tokens == 1;
      return reached_by[edge.from] == op && tokens_to[edge.from] + edge.tokens == 1;
    };
    const auto into = incoming.of(op);
    if (std::none_of(into.begin(), into.end(), implied)) {
      edges.push_back({op, op, 1, EdgeKind::order, EdgeTiming::done});
    }
  }
}

struct Schedule {
  std::vector<double> starts;  // by operator
  double period = 0;
};

// What the latest starts follow from, by operator.
struct Estimates {
  std::span<const double> costs;
  std::span<const double> remaining_in_first;
  std::span<const double> remaining_in_second;
  const std::vector<bool>& on_line;
};

// By operator, in an iteration of its own. `order` is one that all edges without tokens follow.
std::vector<double> earliest_starts(std::span<const std::uint32_t> order, const Adjacency& outgoing,
                                    std::span<const double> costs) {
  std::vector<double> starts(costs.size(), 0);
  for (const std::uint32_t op : order) {
    for (const MarkedEdge& edge : outgoing.of(op)) {
      if (edge.tokens == 0) starts[edge.to] = std::max(starts[edge.to], starts[op] + costs[op]);
    }
  }
  return starts;
}

// Sorts an order that all edges without tokens follow by the earliest starts, which follow them too.
void sort_by_earliest_start(std::vector<std::uint32_t>& order, const Adjacency& outgoing,
                            std::span<const double> costs) {
  const std::vector<double> starts = earliest_starts(order, outgoing, costs);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return starts[a] < starts[b]; });
}

// Tails of one iteration: of the paths alone, and with what the line has to do.
struct Tails {
  std::vector<double> path;
  std::vector<double> loaded;
  double length() const { return loaded.empty() ? 0 : *std::max_element(loaded.begin(), loaded.end()); }
};

// `order` is sorted by the earliest starts, if there is a line. `line` is what the line has to do in the part
// that was walked through, and what follows that. Of the second iteration `next` is null.
Tails walk_back(std::span<const std::uint32_t> order, const Adjacency& outgoing,
                std::span<const double> costs, std::span<const double> remaining,
                const std::vector<bool>& on_line, const Tails* next, double& line) {
  Tails tails{std::vector<double>(costs.size()), std::vector<double>(costs.size())};
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    double path = remaining[*op];
    double loaded = remaining[*op];
    for (const MarkedEdge& edge : outgoing.of(*op)) {
      const Tails* follows = edge.tokens == 0 ? &tails : edge.tokens == 1 ? next : nullptr;
      if (follows == nullptr) continue;
      path = std::max(path, follows->path[edge.to]);
      loaded = std::max(loaded, follows->loaded[edge.to]);
    }
    if (on_line[*op]) loaded = std::max(loaded, line);
    tails.path[*op] = costs[*op] + path;
    tails.loaded[*op] = costs[*op] + loaded;
    if (on_line[*op]) line = tails.loaded[*op];
  }
  return tails;
}

Schedule latest_starts(std::span<const std::uint32_t> order, const Adjacency& outgoing,
                       const Estimates& estimates) {
  double line = 0;
  const Tails second = walk_back(order, outgoing, estimates.costs, estimates.remaining_in_second,
                                 estimates.on_line, nullptr, line);
  Tails first = walk_back(order, outgoing, estimates.costs, estimates.remaining_in_first, estimates.on_line,
                          &second, line);
  Schedule schedule;
  const double length = first.length();
  schedule.period = length - second.length();
  for (std::uint32_t op = 0; op < order.size(); ++op) {
    schedule.starts.push_back(length - (estimates.on_line[op] ? first.path[op] : first.loaded[op]));
  }
  return schedule;
}

}  // namespace

std::uint32_t MarkedGraph::lane_at(std::uint32_t position) const {
  const auto after = std::upper_bound(lane_begins_.begin() + 1, lane_begins_.end(), position);
  return static_cast<std::uint32_t>(after - lane_begins_.begin() - 1);
}

std::span<const MarkedGraph::EventWait> MarkedGraph::event_waits(std::uint32_t position) const {
  if (event_begins_.empty()) return {};
  return {event_waits_.data() + event_begins_[position],
          event_begins_[position + 1] - event_begins_[position]};
}

std::size_t MarkedGraph::bytes() const {
  const auto size = [](const auto& array) { return array.capacity() * sizeof(array[0]); };
  return sizeof(*this) + size(operators_) + size(positions_) + size(lane_begins_) + size(starts_) +
         size(edge_begins_) + size(edges_) + size(needs_) + size(sources_) + size(event_begins_) +
         size(event_waits_);
}

MarkedGraphBuilder::MarkedGraphBuilder(std::uint32_t operator_count)
    : operator_count_(operator_count),
      lanes_(operator_count, 0),
      costs_(operator_count, 0),
      remaining_in_first_(operator_count, 0),
      remaining_in_second_(operator_count, 0),
      on_line_(operator_count, false) {
  PURINE_CHECK(operator_count <= MarkedGraph::max_operators);
}

void MarkedGraphBuilder::set_lane(std::uint32_t op, std::uint32_t lane) {
  lanes_.at(op) = lane;
}

void MarkedGraphBuilder::set_cost(std::uint32_t op, double seconds) {
  PURINE_CHECK(seconds >= 0);
  costs_.at(op) = seconds;
}

void MarkedGraphBuilder::set_remaining(std::uint32_t op, double in_first, double in_second) {
  PURINE_CHECK(in_second >= 0 && in_first >= in_second);
  remaining_in_first_.at(op) = in_first;
  remaining_in_second_.at(op) = in_second;
}

void MarkedGraphBuilder::set_on_line(std::uint32_t op) {
  on_line_.at(op) = true;
}

void MarkedGraphBuilder::set_parallelism(std::uint32_t lane, int operators) {
  PURINE_CHECK(operators > 0);
  if (parallelism_.size() <= lane) parallelism_.resize(lane + 1, 1);
  parallelism_[lane] = operators;
}

void MarkedGraphBuilder::add_edge(const MarkedEdge& edge) {
  PURINE_CHECK(edge.from < operator_count_ && edge.to < operator_count_);
  PURINE_CHECK(edge.tokens <= MarkedGraph::max_tokens);
  edges_.push_back(edge);
}

MarkedGraph MarkedGraphBuilder::build(const std::function<std::string(std::uint32_t)>& path) const {
  std::vector<MarkedEdge> edges = merge_equal(operator_count_, edges_);
  Adjacency outgoing = group(operator_count_, edges, &MarkedEdge::from);
  std::vector<std::uint32_t> order = topological_order(operator_count_, outgoing, edges, path);
  if (std::find(on_line_.begin(), on_line_.end(), true) != on_line_.end()) {
    sort_by_earliest_start(order, outgoing, costs_);
  }
  Schedule schedule =
      latest_starts(order, outgoing, {costs_, remaining_in_first_, remaining_in_second_, on_line_});
  if (first_come_first_served_) schedule.starts = earliest_starts(order, outgoing, costs_);
  keep_from_overlapping_itself(operator_count_, edges);
  PURINE_CHECK(edges.size() < unreached);

  const std::uint32_t lane_count =
      operator_count_ == 0 ? 1 : *std::max_element(lanes_.begin(), lanes_.end()) + 1;
  std::vector<double> loads(lane_count, 0);
  for (std::uint32_t op = 0; op < operator_count_; ++op) loads[lanes_[op]] += costs_[op];
  for (std::uint32_t lane = 0; lane < lane_count; ++lane) {
    const int parallelism = lane < parallelism_.size() ? parallelism_[lane] : 1;
    schedule.period = std::max(schedule.period, loads[lane] / parallelism);
  }

  MarkedGraph graph;
  graph.period_ = static_cast<float>(schedule.period);
  graph.operators_.resize(operator_count_);
  std::iota(graph.operators_.begin(), graph.operators_.end(), 0U);
  std::sort(graph.operators_.begin(), graph.operators_.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (lanes_[a] != lanes_[b]) return lanes_[a] < lanes_[b];
    if (schedule.starts[a] != schedule.starts[b]) return schedule.starts[a] < schedule.starts[b];
    return a < b;
  });
  graph.positions_.resize(operator_count_);
  graph.starts_.resize(operator_count_);
  graph.lane_begins_.assign(lane_count + 1, 0);
  for (std::uint32_t position = 0; position < operator_count_; ++position) {
    const std::uint32_t op = graph.operators_[position];
    graph.positions_[op] = position;
    graph.starts_[position] = static_cast<float>(schedule.starts[op]);
    ++graph.lane_begins_[lanes_[op] + 1];
  }
  std::partial_sum(graph.lane_begins_.begin(), graph.lane_begins_.end(), graph.lane_begins_.begin());

  for (MarkedEdge& edge : edges) {
    edge.from = graph.positions_[edge.from];
    edge.to = graph.positions_[edge.to];
  }
  outgoing = group(operator_count_, edges, &MarkedEdge::from);
  graph.edge_begins_ = outgoing.begins;
  graph.edges_.reserve(edges.size());
  graph.needs_.assign(operator_count_, 0);
  std::vector<bool> is_source(operator_count_, true);
  std::vector<MarkedEdge> events;
  for (std::uint32_t position = 0; position < operator_count_; ++position) {
    const auto first = outgoing.edges.begin() + outgoing.begins[position];
    const auto last = outgoing.edges.begin() + outgoing.begins[position + 1];
    std::sort(first, last, [](const MarkedEdge& a, const MarkedEdge& b) {
      const bool a_late = a.timing == EdgeTiming::done;
      const bool b_late = b.timing == EdgeTiming::done;
      if (a_late != b_late) return b_late;
      return a.to != b.to ? a.to < b.to : a.tokens < b.tokens;
    });
    for (auto edge = first; edge != last; ++edge) {
      graph.edges_.emplace_back(edge->to, edge->tokens, edge->kind, edge->timing);
      graph.largest_tokens_ = std::max(graph.largest_tokens_, edge->tokens);
      ++graph.needs_[edge->to];
      if (edge->tokens == 0) is_source[edge->to] = false;
      if (edge->timing == EdgeTiming::event) events.push_back(*edge);
    }
  }
  for (std::uint32_t position = 0; position < operator_count_; ++position) {
    if (!is_source[position]) continue;
    graph.sources_.push_back(position);
    ++graph.needs_[position];
  }
  graph.sources_.shrink_to_fit();
  if (!events.empty()) {
    const Adjacency waits = group(operator_count_, events, &MarkedEdge::to);
    graph.event_begins_ = waits.begins;
    for (const MarkedEdge& edge : waits.edges) graph.event_waits_.push_back({edge.from, edge.tokens});
    graph.event_waits_.shrink_to_fit();
  }
  return graph;
}

}  // namespace purine
