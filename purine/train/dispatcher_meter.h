// How much of a step is the dispatcher's own.
#pragma once

#include <optional>

#include "purine/program/program.h"
#include "purine/session/runtime.h"

namespace purine::train {

/// Seconds that a step of a program takes whose operators do nothing: the same graph, each operator in as
/// many parts, on as many workers. A median over some hundred steps. None for a program that isn't for CPUs
/// alone. While no session of the runtime runs.
std::optional<double> dispatcher_seconds(const Program& program, const Runtime& runtime);

}  // namespace purine::train
