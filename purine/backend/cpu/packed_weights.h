// What convolutions in blocks of our own multiply: the weights in the order in which products read them, and
// how many pixels with how many of them at a time.
#pragma once

#include <cstdint>

#include "purine/backend/cpu/panel_product.h"
#include "purine/backend/cpu/winograd_layout.h"

namespace purine::cpu {

/// Pixels of a block come in whole blocks of rows of a product.
constexpr std::int64_t row_quantum = 8;
/// Pixels of a block: what they are multiplied with is read once for them.
constexpr std::int64_t most_rows = 96;
/// Products that are summed up at a time: more would leave too little of the cache.
constexpr std::int64_t most_depth = 512;

/// How weights lie: floats from one channel of what is read, and of what results, to the next. From one
/// element of the kernel, a tap, to the next it is 1.
struct WeightOrder {
  std::int64_t source_channels = 0;
  std::int64_t result_channels = 0;
  std::int64_t taps = 1;
  std::int64_t source_step = 0;
  std::int64_t result_step = 0;
};

/// Both numbers of channels are multiples of `panel_quantum`.
class PackedWeights {
 public:
  explicit PackedWeights(const WeightOrder& order) : order_(order), panels_(order.result_channels) {}

  const WeightOrder& order() const { return order_; }
  /// Of all packed weights: by panels of results, each [tap][channel][column].
  std::int64_t floats() const { return order_.taps * order_.source_channels * panels_.columns(); }
  /// Of the memory that packing needs besides.
  std::int64_t square_floats() const { return side * side * order_.taps; }
  void pack(const float* weight, float* square, float* to) const;

  /// A product with the packed weights from the row of a tap and a channel on, in all channels of `results`:
  /// of `product`, B, C and the columns are set here.
  void multiply(PanelProduct product, const float* packed, std::int64_t tap, std::int64_t channel,
                float* results, ReadAhead& ahead) const;

 private:
  /// Of a panel, the place of the row of a tap and a channel.
  std::int64_t place(const Panels::Panel& panel, std::int64_t tap, std::int64_t channel) const {
    return panel.first * order_.taps * order_.source_channels +
           (tap * order_.source_channels + channel) * panel.columns;
  }

  static constexpr std::int64_t side = panel_quantum;

  WeightOrder order_;
  Panels panels_;
};

}  // namespace purine::cpu
