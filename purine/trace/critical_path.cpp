#include "purine/trace/critical_path.h"

#include <algorithm>
#include <limits>

namespace purine::trace {
namespace {

/// What ended before an event could start.
struct LastNeed {
  std::optional<EventId> event;
  Link link = Link::none;
  std::int64_t end = 0;
};

class Walk {
 public:
  explicit Walk(const Timeline& timeline) : timeline_(timeline), window_(timeline.iterations_in_progress()) {}

  CriticalPath run() {
    CriticalPath path;
    const auto [first, last] = timeline_.iterations();
    const std::optional<EventId> end = timeline_.end_of(last);
    if (!end) return path;
    path.end = timeline_.event(*end).end;
    path.steps = std::max<std::int64_t>(1, last - first);
    path.begin = last > first ? timeline_.event(*timeline_.end_of(first)).end : begin_of(first);
    follow(path, *end);
    std::ranges::reverse(path.stretches);
    return path;
  }

 private:
  void follow(CriticalPath& path, EventId id) const {
    std::int64_t time = path.end;
    Link link = Link::none;
    const auto add = [&](Use use, std::int64_t begin) {
      begin = std::max(begin, path.begin);
      if (begin < time) path.stretches.push_back({id, use, link, begin, time});
      time = std::min(time, begin);
    };
    // Events of no length that touch could be each other's cause: none is visited twice.
    std::size_t left = 0;
    for (const Trace& trace : timeline_.ranks()) left += trace.events.size();
    for (; left > 0; --left) {
      add(timeline_.use(id), timeline_.start(id));
      if (time <= path.begin) return;
      const LastNeed cause = cause_of(id);
      link = cause.link;
      add(Use::idle, cause.event ? cause.end : path.begin);
      if (time <= path.begin || !cause.event) return;
      id = *cause.event;
    }
  }

  /// Of all that an event needs, what was there last.
  LastNeed cause_of(EventId id) const {
    const std::int64_t start = timeline_.start(id);
    LastNeed cause;
    const auto consider = [&](std::optional<EventId> event, Link link) {
      if (!event || *event == id) return;
      const std::int64_t end = std::min(timeline_.event(*event).end, start);
      if (!cause.event || end > cause.end) cause = {event, link, end};
    };
    EventId needs = id;  // whose dependencies count: of a message, those of the end that came later
    const std::optional<EventId> other = timeline_.other_end(id);
    if (other && timeline_.event(*other).begin > timeline_.event(id).begin) needs = *other;
    const std::int64_t iteration = timeline_.event(needs).iteration;
    bool is_source = true;
    for (const Dependency& dependency : timeline_.label(needs).after) {
      is_source = is_source && dependency.tokens > 0;
      consider(timeline_.last_part(needs.rank, dependency.op, iteration - dependency.tokens),
               needs != id        ? Link::message
               : dependency.value ? Link::value
                                  : Link::storage);
    }
    if (!timeline_.label(id).exchange) consider(timeline_.before_on_track(id), Link::track);
    if (is_source) consider(timeline_.end_of(iteration - window_), Link::window);
    return cause;
  }

  std::int64_t begin_of(std::int64_t iteration) const {
    std::int64_t begin = std::numeric_limits<std::int64_t>::max();
    for (const Trace& trace : timeline_.ranks()) {
      for (const OperatorEvent& event : trace.events) {
        if (event.iteration == iteration) begin = std::min(begin, event.begin);
      }
    }
    return begin;
  }

  const Timeline& timeline_;
  std::int64_t window_;
};

}  // namespace

CriticalPath critical_path(const Timeline& timeline) {
  return Walk(timeline).run();
}

}  // namespace purine::trace
