#include "purine/trace/trace.h"

#include <algorithm>
#include <tuple>

namespace purine::trace {

void Trace::sort() {
  std::ranges::sort(events, {}, [](const OperatorEvent& event) {
    return std::tuple(event.begin, event.track, event.end, event.iteration, event.op, event.part);
  });
  std::ranges::sort(spans, {}, [](const SpanEvent& span) {
    return std::tuple(span.begin, span.track, span.end, span.name);
  });
  std::ranges::sort(counters, {}, [](const CounterEvent& counter) {
    return std::tuple(counter.time, counter.track, counter.name, counter.value);
  });
}

void Trace::shift(std::int64_t nanoseconds) {
  for (OperatorEvent& event : events) event.begin += nanoseconds, event.end += nanoseconds;
  for (SpanEvent& span : spans) span.begin += nanoseconds, span.end += nanoseconds;
  for (CounterEvent& counter : counters) counter.time += nanoseconds;
  clock.offset += nanoseconds;
}

}  // namespace purine::trace
