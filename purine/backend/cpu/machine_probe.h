// What this machine's processor can do at most, measured.
#pragma once

#include <string>

namespace purine::cpu {

/// Of one core.
struct CoreRates {
  double operations_per_second = 0;  ///< multiply-adds in f32 that wait for nothing; each counts two
  double bytes_per_second = 0;       ///< read from main memory and written to it
};

/// Measures both while `threads` threads do the same: what each of them gets, so that what cores share is
/// shared. Takes about `seconds`. Of many short measurements it is the median.
CoreRates measure_core_rates(int threads, double seconds);

/// Runs multiply-adds that wait for nothing, 12 vectors of them a round, and returns how many operations they
/// were. Whoever measures them uses the result, so that they are not left out.
double run_multiply_adds(int rounds, float* result);

/// The processor's name as the system tells it: `AMD EPYC 9654`; `unknown` where it tells none.
std::string processor_name();

}  // namespace purine::cpu
