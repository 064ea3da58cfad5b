#include "purine/sim/cores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "purine/core/error.h"

namespace purine::sim {
namespace {

constexpr std::uint64_t look_for_service = ~std::uint64_t{0};  // a tag that no generation reaches
constexpr std::int64_t moment = 1000;  // for which nobody has taken a core that counts as free

}  // namespace

Cores::Cores(VirtualTime& time, int cores, double speed_when_all_busy, std::int64_t turn, std::int64_t slice)
    : time_(time), cores_(cores), speed_when_all_busy_(speed_when_all_busy), turn_(turn), slice_(slice) {
  PURINE_CHECK(cores >= 1);
  PURINE_CHECK(turn >= 0 && slice >= 0);
  PURINE_CHECK(speed_when_all_busy > 0 && speed_when_all_busy <= 1);
}

Cores::Speeds Cores::speeds() const {
  const int busy = static_cast<int>(jobs_.size());
  const int at_work = std::min(busy, cores_);
  const double speed = at_work <= 1 ? 1 : 1 - (1 - speed_when_all_busy_) * (at_work - 1) / (cores_ - 1);
  const auto first = static_cast<int>(
      std::count_if(jobs_.begin(), jobs_.end(), [](const Job& job) { return job.goes_first; }));
  const auto share = [](int cores, int jobs) {
    return jobs <= cores ? 1.0 : static_cast<double>(std::max(0, cores)) / jobs;
  };
  return {speed * share(cores_, first), speed * share(cores_ - first, busy - first)};
}

void Cores::progress() {
  const auto passed = static_cast<double>(time_.now() - since_);
  const Speeds now = speeds();
  since_ = time_.now();
  for (Job& job : jobs_) job.remaining -= passed * now.of(job);
}

void Cores::schedule_next() {
  ++generation_;
  const Speeds now = speeds();
  double wait = std::numeric_limits<double>::infinity();
  for (const Job& job : jobs_) {
    // What has to leave its core to others doesn't go on.
    if (now.of(job) > 0) wait = std::min(wait, std::max(0.0, job.remaining) / now.of(job));
  }
  if (jobs_.empty()) return;
  time_.schedule(time_.now() + static_cast<std::int64_t>(std::ceil(wait - 1e-6)), *this, generation_);
}

void Cores::begin(const Job& job) {
  progress();
  jobs_.push_back(job);
  // Between two operators a core isn't free.
  if (static_cast<int>(jobs_.size()) == cores_ && time_.now() > free_since_ + moment) taken_at_ = time_.now();
  schedule_next();
}

void Cores::run(std::int64_t nanoseconds, Listener& listener, std::uint64_t tag) {
  begin({static_cast<double>(nanoseconds), &listener, tag});
}

void Cores::serve(std::int64_t nanoseconds, Listener& listener, std::uint64_t tag, bool goes_on) {
  if (turn_ == 0) return run(nanoseconds, listener, tag);
  const Job service{static_cast<double>(nanoseconds), &listener, tag, true};
  if (goes_on && static_cast<int>(jobs_.size()) >= cores_) return begin(service);
  services_.push_back(service);
  schedule_service();
}

void Cores::schedule_service() {
  if (services_.empty()) return;
  const bool free = static_cast<int>(jobs_.size()) < cores_;
  const std::int64_t look = free ? time_.now() + moment : (time_.now() / turn_ + 1) * turn_;
  if (next_look_ > time_.now() && next_look_ <= look) return;
  next_look_ = look;
  time_.schedule(look, *this, look_for_service);
}

void Cores::begin_service() {
  if (time_.now() != next_look_) return;  // an earlier look has come in between
  next_look_ = 0;
  if (services_.empty()) return;
  const bool free = static_cast<int>(jobs_.size()) < cores_;
  if (free || (time_.now() % turn_ == 0 && time_.now() - taken_at_ >= slice_)) {
    const Job service = services_.front();
    services_.pop_front();
    begin(service);
  }
  schedule_service();
}

void Cores::act(std::uint64_t tag) {
  if (tag == look_for_service) return begin_service();
  if (tag != generation_) return;
  progress();
  // Less than a nanosecond remains where speeds were not whole.
  const auto done =
      std::find_if(jobs_.begin(), jobs_.end(), [](const Job& job) { return job.remaining < 1; });
  if (done == jobs_.end()) return schedule_next();
  const Job job = *done;
  if (static_cast<int>(jobs_.size()) == cores_) free_since_ = time_.now();
  jobs_.erase(done);
  schedule_next();
  schedule_service();
  job.listener->work_done(job.tag);
}

}  // namespace purine::sim
