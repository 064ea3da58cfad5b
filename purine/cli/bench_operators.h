// What `purine bench --ops` tells of a run's operators.
#pragma once

#include <string>
#include <string_view>

#include "purine/cli/json_object.h"
#include "purine/program/cost_table.h"

namespace purine::cli {

/// A table, the line that took the most time first, and what all of them make of the machine. `by` is what
/// has one line: an operator ("path"), all of the same type, attributes and shapes ("shape"), or of one type
/// ("type").
std::string operators_text(const program::CostTable& costs, std::string_view by, double step_seconds);

/// The same as members of an object: machine, operators, busy, peak.
void add_operators(JsonObject& object, const program::CostTable& costs, std::string_view by,
                   double step_seconds);

}  // namespace purine::cli
