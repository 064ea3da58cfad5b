#include "purine/sim/virtual_time.h"

#include <algorithm>

#include "purine/core/error.h"

namespace purine::sim {

void VirtualTime::schedule(std::int64_t time, TimedAction& action, std::uint64_t tag) {
  PURINE_CHECK(time >= now_);
  heap_.push_back({time, sequence_++, &action, tag});
  std::push_heap(heap_.begin(), heap_.end());
}

bool VirtualTime::advance() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end());
  const Due due = heap_.back();
  heap_.pop_back();
  now_ = due.time;
  ++actions_;
  due.action->act(due.tag);
  return true;
}

}  // namespace purine::sim
