// What a trace says of a program's operators.
#pragma once

#include <vector>

#include "purine/program/program.h"
#include "purine/trace/trace.h"

namespace purine::trace {

/// By operator: events of the program name its operators by the same numbers.
std::vector<OperatorLabel> operators_of(const Program& program);

/// By place.
std::vector<PlannedMemory> memory_of(const Program& program);

}  // namespace purine::trace
