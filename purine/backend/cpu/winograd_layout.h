// How a Winograd convolution is cut into tiles, panels of channels and parts, and where its scratch memory
// lies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "purine/backend/cpu/panel_product.h"
#include "purine/core/shape.h"

namespace purine::cpu {

/// A batch of images with the channels last: pixel (n, i, j) lies at ((n * height + i) * width + j) *
/// channels.
struct PixelGrid {
  std::int64_t samples = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
};

/// Of a tensor [N, C, H, W].
inline PixelGrid grid_of(const Shape& shape) {
  return {shape[0], shape[2], shape[3], shape[1]};
}

/// Tiles of m x m outputs cover a grid of results, those at its bottom and right edge perhaps in part.
struct TileGrid {
  TileGrid(const PixelGrid& results, int outputs)
      : height((results.height + outputs - 1) / outputs),
        width((results.width + outputs - 1) / outputs),
        count(results.samples * height * width),
        outputs_(outputs) {}

  struct Tile {
    std::int64_t sample;
    std::int64_t row;     ///< of its first output
    std::int64_t column;  ///< of its first output
  };
  Tile at(std::int64_t index) const {
    return {index / (height * width), index / width % height * outputs_, index % width * outputs_};
  }

  std::int64_t height;
  std::int64_t width;
  std::int64_t count;

 private:
  int outputs_;
};

/// The pixels of a square of `extent` x `extent` from (row, column) on, as pointers; outside of the grid is
/// `zeros`, a pixel of zeros.
inline void gather_pixels(const float* grid_data, const PixelGrid& grid, std::int64_t sample,
                          std::int64_t row, std::int64_t column, int extent, const float* zeros,
                          const float** pixels) {
  for (std::int64_t i = row; i < row + extent; ++i) {
    const bool row_inside = i >= 0 && i < grid.height;
    const float* line = grid_data + (sample * grid.height + i) * grid.width * grid.channels;
    for (std::int64_t j = column; j < column + extent; ++j) {
      const bool inside = row_inside && j >= 0 && j < grid.width;
      *pixels++ = inside ? line + j * grid.channels : zeros;
    }
  }
}

/// Of a transformed tile, a side.
constexpr int most_points = 6;
/// The most parts of an operator.
constexpr double most_parts = 8;
/// The most bytes of transformed weights, or sums of their gradient, that a part has in its scratch memory.
constexpr double weight_bytes_per_part = 8 << 20;

/// Into how many parts to divide tiles; `operations` are those of the definition.
inline std::int64_t parts_of_tiles(std::int64_t tiles, double operations) {
  constexpr double least_tiles = 128;
  constexpr double least_operations = 5e7;
  const double worthwhile = std::min(static_cast<double>(tiles) / least_tiles, operations / least_operations);
  return static_cast<std::int64_t>(std::clamp(worthwhile, 1.0, most_parts));
}

/// Tiles that a part works on at a time, so that their pixels and products, of so many bytes a tile, stay in
/// a second-level cache of half a megabyte and more; the transformed weights are read once for them.
inline std::int64_t tiles_of_block(std::int64_t bytes_per_tile) {
  constexpr std::int64_t block_bytes = 512 << 10;
  constexpr std::int64_t least_tiles = 16;
  constexpr std::int64_t most_tiles = 96;
  return std::clamp(block_bytes / bytes_per_tile, least_tiles, most_tiles);
}

/// Some channels in panels of 16, 32 or 48 columns; the last columns of the last panel may be unused.
class Panels {
 public:
  struct Panel {
    std::int64_t first;    ///< its first channel, counted from that of the block
    std::int64_t columns;  ///< a multiple of panel_quantum
    std::int64_t count;    ///< the channels among them
  };

  explicit Panels(std::int64_t channels) {
    const std::int64_t quanta = (channels + panel_quantum - 1) / panel_quantum;
    constexpr std::int64_t most_quanta = most_panel_columns / panel_quantum;
    const std::int64_t panels = (quanta + most_quanta - 1) / most_quanta;
    columns_ = quanta * panel_quantum;
    for (std::int64_t i = 0; i < panels; ++i) {
      const std::int64_t first = quanta * i / panels * panel_quantum;
      const std::int64_t end = quanta * (i + 1) / panels * panel_quantum;
      panels_.push_back({first, end - first, std::min(end, channels) - first});
    }
  }
  /// Columns of all panels.
  std::int64_t columns() const { return columns_; }
  auto begin() const { return panels_.begin(); }
  auto end() const { return panels_.end(); }

 private:
  std::int64_t columns_ = 0;
  std::vector<Panel> panels_;
};

/// Floats between the transformed elements of a block: whole cache lines, an odd number of them, so that the
/// elements of one tile do not all fall into the same few sets of the cache.
inline std::int64_t element_step(std::int64_t floats) {
  constexpr std::int64_t line = 16;
  return ((floats + line - 1) / line | 1) * line;
}

/// Arrays of floats one after the other in scratch memory, each at the start of a cache line.
class FloatArrays {
 public:
  /// Adds an array and gives its place.
  std::int64_t add(std::int64_t floats) {
    const std::int64_t place = floats_;
    floats_ += (floats + 15) / 16 * 16;
    return place;
  }
  std::size_t bytes() const { return static_cast<std::size_t>(floats_) * sizeof(float); }

 private:
  std::int64_t floats_ = 0;
};

/// Range [first, second) of part `part` of `parts` over `count` things, in whole `quantum`s of them.
inline std::pair<std::int64_t, std::int64_t> range_of_part(std::int64_t count, std::int64_t quantum,
                                                           std::int64_t part, std::int64_t parts) {
  const std::int64_t quanta = (count + quantum - 1) / quantum;
  return {std::min(count, quanta * part / parts * quantum),
          std::min(count, quanta * (part + 1) / parts * quantum)};
}

}  // namespace purine::cpu
