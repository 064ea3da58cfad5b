#include "purine/backend/cpu/winograd_transposed.h"

#include <algorithm>
#include <array>

#include "purine/backend/cpu/winograd_layout.h"
#include "purine/backend/cpu/winograd_transforms.h"

namespace purine::cpu {
namespace {

/// The most tiles of a sample.
constexpr std::int64_t most_sample_tiles = 96;

const WinogradTransforms& transforms_of(const Shape& weight, int tile) {
  const WinogradTransforms* found = winograd_transforms(static_cast<int>(weight[2]), tile);
  PURINE_CHECK(found != nullptr);
  return *found;
}

class WinogradTransposed final : public Kernel {
 public:
  WinogradTransposed(const Shape& image, const Shape& weight, const Shape& output,
                     const ops::Conv2dOptions& options, int tile)
      : image_(grid_of(image)),
        output_(grid_of(output)),
        top_(options.padding[0]),
        left_(options.padding[1]),
        tile_(tile),
        transforms_(transforms_of(weight, tile)),
        tiles_(output_, tile),
        panels_(image_.channels),
        reached_rows_(tiles_.height * tile + transforms_.kernel - 1),
        reached_columns_(tiles_.width * tile + transforms_.kernel - 1) {
    const double operations =
        2.0 * static_cast<double>(output.elements()) * static_cast<double>(weight[1] * weight[2] * weight[3]);
    parts_ = std::min(output_.samples, parts_of_tiles(tiles_.count, operations));
    const std::int64_t bytes_per_tile =
        elements() * (output_.channels + most_panel_columns) * static_cast<std::int64_t>(sizeof(float));
    block_samples_ =
        std::clamp<std::int64_t>(tiles_of_block(bytes_per_tile) / sample_tiles(), 1, output_.samples);
    const std::int64_t block_tiles = block_samples_ * sample_tiles();
    weight_step_ = element_step(output_.channels * panels_.columns());
    gradient_step_ = element_step(output_.channels * block_tiles);
    product_step_ = element_step(most_panel_columns * block_tiles);
    FloatArrays arrays;
    weights_ = arrays.add(elements() * weight_step_);
    gradients_ = arrays.add(elements() * gradient_step_);
    products_ = arrays.add(elements() * product_step_);
    reached_ = arrays.add(reached_rows_ * reached_columns_ * most_panel_columns);
    zeros_ = arrays.add(output_.channels);
    scratch_bytes_ = arrays.bytes();
  }

  int parts() const override { return static_cast<int>(parts_); }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::size_t kept_bytes() const override {
    return static_cast<std::size_t>(elements() * weight_step_) * sizeof(float);
  }
  void run(const KernelCall& call) override {
    auto* scratch = reinterpret_cast<float*>(call.scratch);
    if (!call.scratch_kept) {
      std::fill_n(scratch + zeros_, output_.channels, 0.0F);
      transform_weights(call.input<float>(1), scratch + weights_);
    }
    const auto [first, end] = range_of_part(output_.samples, 1, call.part, parts_);
    for (std::int64_t sample = first; sample < end; sample += block_samples_) {
      run_block(call, sample, std::min(block_samples_, end - sample), scratch);
    }
  }

 private:
  /// Of a transformed tile.
  std::int64_t elements() const { return std::int64_t{transforms_.points} * transforms_.points; }
  std::int64_t sample_tiles() const { return tiles_.height * tiles_.width; }

  void transform_weights(const float* weight, float* to) const {
    const std::int64_t taps = std::int64_t{transforms_.kernel} * transforms_.kernel;
    for (const Panels::Panel& panel : panels_) {
      transforms_.weight(weight + panel.first * taps, taps, image_.channels * taps, false, output_.channels,
                         panel.count, panel.columns, to + panel.first * output_.channels, weight_step_);
    }
  }

  void run_block(const KernelCall& call, std::int64_t first_sample, std::int64_t samples,
                 float* scratch) const {
    const std::int64_t tiles = samples * sample_tiles();
    std::array<const float*, most_points * most_points> pixels;
    for (std::int64_t index = 0; index < tiles; ++index) {
      const TileGrid::Tile tile = tiles_.at(first_sample * sample_tiles() + index);
      gather_pixels(call.input<float>(0), output_, tile.sample, tile.row, tile.column, tile_,
                    scratch + zeros_, pixels.data());
      transforms_.output_gradient(pixels.data(), 0, output_.channels,
                                  scratch + gradients_ + index * output_.channels, gradient_step_);
    }
    for (const Panels::Panel& panel : panels_) {
      PanelProduct product;
      product.a_row = output_.channels;
      product.a_depth = 1;
      product.c_row = panel.columns;
      product.rows = tiles;
      product.depth = output_.channels;
      product.columns = panel.columns;
      for (std::int64_t element = 0; element < elements(); ++element) {
        product.a = scratch + gradients_ + element * gradient_step_;
        product.b = scratch + weights_ + element * weight_step_ + panel.first * output_.channels;
        product.c = scratch + products_ + element * product_step_;
        multiply_panel(product);
      }
      for (std::int64_t sample = 0; sample < samples; ++sample) {
        add_tiles(scratch + products_ + sample * sample_tiles() * panel.columns, panel.columns,
                  scratch + reached_);
        copy_image(scratch + reached_, panel, first_sample + sample, call.output<float>(0));
      }
    }
  }

  /// Adds up what the tiles of a sample add to the pixels that they reach, from `top_` and `left_` before the
  /// image's first one on.
  void add_tiles(const float* products, std::int64_t channels, float* reached) const {
    const std::int64_t row_step = reached_columns_ * channels;
    std::fill_n(reached, reached_rows_ * row_step, 0.0F);
    for (std::int64_t index = 0; index < sample_tiles(); ++index) {
      const TileGrid::Tile tile = tiles_.at(index);
      transforms_.input_gradient(products + index * channels, product_step_, channels,
                                 reached + tile.row * row_step + tile.column * channels, row_step, channels);
    }
  }

  /// Those of the pixels that lie in the image: tiles reach all of it.
  void copy_image(const float* reached, const Panels::Panel& panel, std::int64_t sample,
                  float* gradient) const {
    for (std::int64_t i = 0; i < image_.height; ++i) {
      const float* from = reached + ((i + top_) * reached_columns_ + left_) * panel.columns;
      float* to = gradient + (sample * image_.height + i) * image_.width * image_.channels + panel.first;
      for (std::int64_t j = 0; j < image_.width; ++j) {
        std::copy_n(from + j * panel.columns, panel.count, to + j * image_.channels);
      }
    }
  }

  PixelGrid image_;
  PixelGrid output_;
  std::int64_t top_;
  std::int64_t left_;
  int tile_;
  const WinogradTransforms& transforms_;
  TileGrid tiles_;
  Panels panels_;
  std::int64_t reached_rows_;
  std::int64_t reached_columns_;
  std::int64_t parts_ = 1;
  std::int64_t block_samples_ = 1;
  std::int64_t weight_step_ = 0;
  std::int64_t gradient_step_ = 0;
  std::int64_t product_step_ = 0;
  // Places in the scratch memory.
  std::int64_t weights_ = 0;
  std::int64_t gradients_ = 0;
  std::int64_t products_ = 0;
  std::int64_t reached_ = 0;
  std::int64_t zeros_ = 0;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace

bool winograd_transposed_is_less(const Shape& image, const Shape& weight, const Shape& output, int tile) {
  const TileGrid of_output(grid_of(output), tile);
  if (of_output.height * of_output.width > most_sample_tiles) return false;
  const int points = transforms_of(weight, tile).points;
  const double weight_bytes = static_cast<double>(points * points * weight[0] * Panels(weight[1]).columns()) *
                              static_cast<double>(sizeof(float));
  return weight_bytes <= weight_bytes_per_part && of_output.count < TileGrid(grid_of(image), tile).count;
}

std::unique_ptr<Kernel> winograd_transposed(const Shape& image, const Shape& weight, const Shape& output,
                                            const ops::Conv2dOptions& options, int tile) {
  return std::make_unique<WinogradTransposed>(image, weight, output, options, tile);
}

}  // namespace purine::cpu
