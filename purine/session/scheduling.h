// How a CPU's workers share the operators of a step, and how that is chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "purine/program/program.h"
#include "purine/runtime/dispatcher.h"
#include "purine/session/runtime.h"

namespace purine {

/// How workers share operators. Whichever it is, kernels do the same work in the same parts: values are the
/// same to the bit.
enum class Scheduling : std::uint8_t {
  automatic,     ///< whichever of the others is predicted to take the least time
  side_by_side,  ///< an operator runs whole on one worker, others beside it on other workers
  divided,       ///< an operator is divided into parts, which several workers run
};

/// What was chosen, and among what.
struct SchedulingChoice {
  struct Candidate {
    int parts = 1;  ///< the most of an operator; 1: operators run whole, side by side
    double step_seconds = 0;
  };
  int parts = 1;                      ///< as Candidate::parts
  std::vector<Candidate> candidates;  ///< by parts, ascending; none where nothing was predicted
};

/// The lanes of a program that is for CPUs of this runtime alone; nothing of another program.
std::optional<std::vector<Lane>> cpu_lanes(const Program& program, const Runtime& runtime);

/// Predicts the seconds of a step of a program for CPUs alone, divided as it is: its marked graph runs on the
/// dispatcher, in virtual time. What an operator takes is estimated from the cost that its contract tells, of
/// one core, and shared by its parts; each part has a start, and each worker that runs some of an operator's
/// parts makes what the kernel keeps for them. So times are of a machine as it may be, and their ratios say
/// something. Takes about half a microsecond a part. Programs without kernels have whole operators.
double predict_step_seconds(const Program& program, std::vector<Lane> lanes, int window);

/// Chooses how the workers of a runtime share a program's operators, and divides it so. Candidates for the
/// most parts of an operator are 1, 2, 4, … and as many as any kernel has; of those that are within half a
/// percent of the fastest the most are taken. One worker has nothing to choose, nor is anything predicted of
/// programs over several processes or on other devices: operators then have as many parts as their kernels,
/// unless they are to run side by side.
SchedulingChoice choose_scheduling(Program& program, const Runtime& runtime, Scheduling scheduling,
                                   int window);

}  // namespace purine
