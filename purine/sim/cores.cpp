#include "purine/sim/cores.h"

#include <algorithm>
#include <cmath>

#include "purine/core/error.h"

namespace purine::sim {

Cores::Cores(VirtualTime& time, int cores, double speed_when_all_busy)
    : time_(time), cores_(cores), speed_when_all_busy_(speed_when_all_busy) {
  PURINE_CHECK(cores >= 1);
  PURINE_CHECK(speed_when_all_busy > 0 && speed_when_all_busy <= 1);
}

double Cores::speed() const {
  const int busy = static_cast<int>(jobs_.size());
  if (busy <= 1) return 1;
  if (busy > cores_) return speed_when_all_busy_ * cores_ / busy;
  return 1 - (1 - speed_when_all_busy_) * (busy - 1) / (cores_ - 1);
}

void Cores::progress() {
  const double done = static_cast<double>(time_.now() - since_) * speed();
  since_ = time_.now();
  for (Job& job : jobs_) job.remaining -= done;
}

void Cores::schedule_next() {
  ++generation_;
  if (jobs_.empty()) return;
  const auto next = std::min_element(jobs_.begin(), jobs_.end(),
                                     [](const Job& a, const Job& b) { return a.remaining < b.remaining; });
  const auto wait = static_cast<std::int64_t>(std::ceil(std::max(0.0, next->remaining) / speed() - 1e-6));
  time_.schedule(time_.now() + wait, *this, generation_);
}

void Cores::run(std::int64_t nanoseconds, Listener& listener, std::uint64_t tag) {
  progress();
  jobs_.push_back({static_cast<double>(nanoseconds), &listener, tag});
  schedule_next();
}

void Cores::act(std::uint64_t tag) {
  if (tag != generation_) return;
  progress();
  // Less than a nanosecond remains where speeds were not whole.
  const auto done =
      std::find_if(jobs_.begin(), jobs_.end(), [](const Job& job) { return job.remaining < 1; });
  if (done == jobs_.end()) return schedule_next();
  const Job job = *done;
  jobs_.erase(done);
  schedule_next();
  job.listener->work_done(job.tag);
}

}  // namespace purine::sim
