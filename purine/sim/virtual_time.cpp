#include "purine/sim/virtual_time.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "purine/core/error.h"

namespace purine::sim {
namespace {

// So that neither an operator's time over the slowest core's speed nor a sum of two times overflows.
constexpr double most_nanoseconds = 0x1p53;
constexpr std::int64_t most_time = std::int64_t{1} << 61;

[[noreturn]] void refuse(std::string_view what) {
  throw Error("simulation", std::string(what),
              "are the cluster's rates right? A smaller batch takes less, and so do fewer steps");
}

}  // namespace

std::int64_t nanoseconds(double seconds) {
  const double exact = seconds * 1e9;
  if (!(exact < most_nanoseconds)) refuse("an operator or a message takes longer than 104 days");
  return std::llround(exact);
}

void VirtualTime::schedule(std::int64_t time, TimedAction& action, std::uint64_t tag) {
  PURINE_CHECK(time >= now_);
  if (time > most_time) refuse("the steps take longer than 73 years");
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
