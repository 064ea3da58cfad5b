// Texts of any length from all ranks.
#pragma once

#include <string>
#include <vector>

#include "purine/session/runtime.h"

namespace purine {

/// The texts of all ranks, by rank, at rank 0; nothing at the others. Unlike Endpoint::all_gather it sends
/// each text once. A collective call between runs.
std::vector<std::string> gather_texts(Runtime& runtime, std::string text);

}  // namespace purine
