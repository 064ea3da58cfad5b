// What the sections of the job file's keys are written with.
#pragma once

#include <variant>
#include <vector>

#include "purine/train/job_keys.h"

namespace purine::train {

// `section` is a member of Job, `member` one of that.
template <typename Section, typename Type>
JobMember member(Section Job::*section, Type Section::*member) {
  return {[=](const Job& job) { return JobValue(job.*section.*member); },
          [=](Job& job, const JobValue& value) { job.*section.*member = std::get<Type>(value); }};
}

inline JobRange at_least(double minimum) {
  return {.minimum = minimum};
}
inline JobRange above(double minimum) {
  return {.minimum = minimum, .above_minimum = true};
}
inline JobRange between(double minimum, double maximum) {
  return {.minimum = minimum, .maximum = maximum};
}
inline JobRange below(double minimum, double maximum) {
  return {.minimum = minimum, .maximum = maximum, .below_maximum = true};
}
inline JobRange share_above_zero() {
  return {.minimum = 0, .maximum = 1, .above_minimum = true};
}

/// Those of `[parallel]`.
std::vector<JobKey> parallel_keys();
/// Those of `[emulated]`.
std::vector<JobKey> emulated_keys();

}  // namespace purine::train
