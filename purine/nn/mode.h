// What a network is built for.
#pragma once

#include <cstdint>

namespace purine::nn {

/// Training drops out and normalises by the batch; inference leaves dropout out and normalises by the running
/// statistics. The variables, with their paths and shapes, are the same in both, so that a checkpoint of one
/// fits the other.
enum class Mode : std::uint8_t { training, inference };

}  // namespace purine::nn
