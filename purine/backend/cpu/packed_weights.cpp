#include "purine/backend/cpu/packed_weights.h"

#include <algorithm>

namespace purine::cpu {

void PackedWeights::pack(const float* weight, float* square, float* to) const {
  // By squares of channels, which go through memory of their own: rows of weights that lie a power of two
  // apart would push each other out of the cache.
  const auto& [channels, results, taps, source_step, result_step] = order_;
  const bool adjacent = source_step == taps;  // a row of the square: channels of the source
  const std::int64_t row_step = adjacent ? result_step : source_step;
  const std::int64_t by_channel = adjacent ? taps : side * taps;
  const std::int64_t by_result = adjacent ? side * taps : taps;
  for (const Panels::Panel& panel : panels_) {
    for (std::int64_t j = 0; j < panel.columns; j += side) {
      for (std::int64_t k = 0; k < channels; k += side) {
        const float* from = weight + k * source_step + (panel.first + j) * result_step;
        for (std::int64_t r = 0; r < side; ++r)
          std::copy_n(from + r * row_step, side * taps, square + r * side * taps);
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          float* packed = to + place(panel, tap, k) + j;
          for (std::int64_t c = 0; c < side; ++c) {
            const float* elements = square + c * by_channel + tap;
            for (std::int64_t r = 0; r < side; ++r) packed[c * panel.columns + r] = elements[r * by_result];
          }
        }
      }
    }
  }
}

void PackedWeights::multiply(PanelProduct product, const float* packed, std::int64_t tap,
                             std::int64_t channel, float* results, ReadAhead& ahead) const {
  for (const Panels::Panel& panel : panels_) {
    product.b = packed + place(panel, tap, channel);
    product.c = results + panel.first;
    product.columns = panel.columns;
    multiply_panel(product, &ahead);
  }
}

}  // namespace purine::cpu
