#include "purine/backend/cpu/winograd.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "purine/backend/cpu/winograd_layout.h"
#include "purine/backend/cpu/winograd_transforms.h"
#include "purine/backend/cpu/winograd_transposed.h"

namespace purine::cpu {
namespace {

using ops::Conv2dOptions;

/// Tiles of a weight gradient's block: the sums are read and written once a block.
constexpr std::int64_t gradient_block_tiles = 64;

/// The least operations of a part of the channels, those of the definition: some milliseconds. Each part
/// repeats a transform that others do too.
constexpr double operations_per_part = 1e9;

/// Into how many parts to divide channels: as many as the work is worth, of no fewer than `least` channels
/// each, but always so many that the transformed weights fit the scratch memory.
std::int64_t parts_of_channels(std::int64_t channels, std::int64_t least, double operations,
                               double weight_bytes) {
  const auto most = static_cast<double>(std::max<std::int64_t>(channels / panel_quantum, 1));
  const double worthwhile =
      std::min({static_cast<double>(channels / least), operations / operations_per_part, most_parts});
  const double needed = weight_bytes / weight_bytes_per_part;
  return static_cast<std::int64_t>(
      std::ceil(std::clamp(std::max(std::floor(worthwhile), needed), 1.0, most)));
}

/// Where the kernel's elements from one channel to another lie.
struct WeightSteps {
  std::int64_t output = 0;
  std::int64_t input = 0;
  bool turned = false;
};

/// A convolution: every result is the sum over a square window whose first pixel is `top` rows above and
/// `left` columns before it, where pixels outside of the image are 0.
struct Correlation {
  PixelGrid image;
  PixelGrid result;
  std::int64_t top = 0;
  std::int64_t left = 0;
  WeightSteps weight_steps;
  bool has_bias = false;
  int kernel = 0;
  int tile = 0;

  std::int64_t kernel_elements() const { return std::int64_t{kernel} * kernel; }
  /// Of the definition, a multiply-add counting two.
  double operations() const {
    const std::int64_t pixels = result.samples * result.height * result.width;
    return 2.0 * static_cast<double>(pixels * kernel_elements()) *
           static_cast<double>(image.channels * result.channels);
  }
  /// Of all transformed weights.
  double weight_bytes() const {
    const int points = transforms().points;
    return static_cast<double>(points * points * image.channels * result.channels) * sizeof(float);
  }
  const WinogradTransforms& transforms() const {
    const WinogradTransforms* found = winograd_transforms(kernel, tile);
    PURINE_CHECK(found != nullptr);
    return *found;
  }
};

/// Forward and input gradient. A part has some tiles and some of the results' channels: it transforms the
/// weights of those channels, then block by block the pixels, multiplies, and transforms the products back.
class WinogradCorrelation final : public Kernel {
 public:
  explicit WinogradCorrelation(const Correlation& correlation)
      : c_(correlation), transforms_(correlation.transforms()), tiles_(correlation.result, correlation.tile) {
    // Each worker transforms the weights once, whatever the number of parts that it runs.
    constexpr std::int64_t least_channels = 128;  // so that transforming the pixels again costs 5% at most
    tile_parts_ = parts_of_tiles(tiles_.count, c_.operations());
    // Channels are divided where there are too few tiles to divide.
    channel_parts_ = parts_of_channels(c_.result.channels, least_channels,
                                       tile_parts_ > 1 ? 0 : c_.operations(), c_.weight_bytes());
    const std::int64_t channels = c_.image.channels;
    const std::int64_t columns = widest_part();
    const std::int64_t bytes_per_tile =
        elements() * (channels + most_panel_columns) * static_cast<std::int64_t>(sizeof(float));
    block_tiles_ = std::min(tiles_.count, tiles_of_block(bytes_per_tile));
    weight_step_ = element_step(channels * columns);
    pixel_step_ = element_step(channels * block_tiles_);
    product_step_ = element_step(most_panel_columns * block_tiles_);
    FloatArrays arrays;
    weights_ = arrays.add(elements() * weight_step_);
    pixels_ = arrays.add(elements() * pixel_step_);
    products_ = arrays.add(elements() * product_step_);
    zeros_ = arrays.add(channels);
    transformed_ = arrays.add(sizeof(std::int64_t) / sizeof(float));
    scratch_bytes_ = arrays.bytes();
  }

  int parts() const override { return static_cast<int>(tile_parts_ * channel_parts_); }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::size_t kept_bytes() const override {
    return static_cast<std::size_t>(elements() * weight_step_) * sizeof(float);
  }
  void run(const KernelCall& call) override {
    // Parts of the same channels follow one another, and share the transformed weights where they can.
    const std::int64_t channel_part = call.part / tile_parts_;
    const auto [first_channel, end_channel] = channels_of(channel_part);
    const auto [first_tile, end_tile] = range_of_part(tiles_.count, 1, call.part % tile_parts_, tile_parts_);
    auto* scratch = reinterpret_cast<float*>(call.scratch);
    const Panels panels(end_channel - first_channel);
    auto* transformed = reinterpret_cast<std::int64_t*>(scratch + transformed_);
    if (!call.scratch_kept || *transformed != channel_part) {
      std::fill_n(scratch + zeros_, c_.image.channels, 0.0F);
      transform_weights(call.input<float>(1) + first_channel * c_.weight_steps.output, panels,
                        scratch + weights_);
      *transformed = channel_part;
    }
    const float* bias = c_.has_bias ? call.input<float>(2) + first_channel : nullptr;
    const std::int64_t blocks = (end_tile - first_tile + block_tiles_ - 1) / block_tiles_;
    for (std::int64_t block = 0; block < blocks; ++block) {
      const auto [begin, end] = range_of_part(end_tile - first_tile, 1, block, blocks);
      run_block(call, first_tile + begin, first_tile + end, first_channel, panels, bias, scratch);
    }
  }

 private:
  /// Of a transformed tile.
  std::int64_t elements() const { return std::int64_t{transforms_.points} * transforms_.points; }
  std::pair<std::int64_t, std::int64_t> channels_of(std::int64_t part) const {
    return range_of_part(c_.result.channels, panel_quantum, part, channel_parts_);
  }
  std::int64_t widest_part() const {
    std::int64_t widest = 0;
    for (std::int64_t part = 0; part < channel_parts_; ++part) {
      const auto [begin, end] = channels_of(part);
      widest = std::max(widest, Panels(end - begin).columns());
    }
    return widest;
  }

  void transform_weights(const float* weight, const Panels& panels, float* to) const {
    for (const Panels::Panel& panel : panels) {
      transforms_.weight(weight + panel.first * c_.weight_steps.output, c_.weight_steps.output,
                         c_.weight_steps.input, c_.weight_steps.turned, c_.image.channels, panel.count,
                         panel.columns, to + panel.first * c_.image.channels, weight_step_);
    }
  }

  void run_block(const KernelCall& call, std::int64_t begin, std::int64_t end, std::int64_t first_channel,
                 const Panels& panels, const float* bias, float* scratch) const {
    const std::int64_t channels = c_.image.channels;
    const auto* image = call.input<float>(0);
    std::array<const float*, most_points * most_points> pixels;
    for (std::int64_t index = begin; index < end; ++index) {
      const TileGrid::Tile tile = tiles_.at(index);
      gather_pixels(image, c_.image, tile.sample, tile.row - c_.top, tile.column - c_.left,
                    transforms_.points, scratch + zeros_, pixels.data());
      transforms_.input(pixels.data(), channels, scratch + pixels_ + (index - begin) * channels, pixel_step_);
    }
    for (const Panels::Panel& panel : panels) {
      PanelProduct product;
      product.a_row = channels;
      product.a_depth = 1;
      product.c_row = panel.columns;
      product.rows = end - begin;
      product.depth = channels;
      product.columns = panel.columns;
      for (std::int64_t element = 0; element < elements(); ++element) {
        product.a = scratch + pixels_ + element * pixel_step_;
        product.b = scratch + weights_ + element * weight_step_ + panel.first * channels;
        product.c = scratch + products_ + element * product_step_;
        multiply_panel(product);
      }
      const std::int64_t channel = first_channel + panel.first;
      for (std::int64_t index = begin; index < end; ++index) {
        write_tile(scratch + products_ + (index - begin) * panel.columns, tiles_.at(index), channel,
                   panel.count, bias == nullptr ? nullptr : bias + panel.first, call.output<float>(0));
      }
    }
  }

  void write_tile(const float* products, const TileGrid::Tile& tile, std::int64_t channel, std::int64_t count,
                  const float* bias, float* result) const {
    const PixelGrid& grid = c_.result;
    const std::int64_t pixel = (tile.sample * grid.height + tile.row) * grid.width + tile.column;
    transforms_.output(products, product_step_, count, bias, result + pixel * grid.channels + channel,
                       grid.width * grid.channels, grid.channels,
                       std::min<std::int64_t>(c_.tile, grid.height - tile.row),
                       std::min<std::int64_t>(c_.tile, grid.width - tile.column));
  }

  Correlation c_;
  const WinogradTransforms& transforms_;
  TileGrid tiles_;
  std::int64_t tile_parts_ = 1;
  std::int64_t channel_parts_ = 1;
  std::int64_t block_tiles_ = 0;
  std::int64_t weight_step_ = 0;
  std::int64_t pixel_step_ = 0;
  std::int64_t product_step_ = 0;
  // Places in the scratch memory.
  std::int64_t weights_ = 0;
  std::int64_t pixels_ = 0;
  std::int64_t products_ = 0;
  std::int64_t zeros_ = 0;
  std::int64_t transformed_ = 0;  // whose channels' weights are in the scratch memory: a number of part
  std::size_t scratch_bytes_ = 0;
};

/// The weight gradient. A part has some of the output's channels and all tiles: block by block it transforms
/// pixels and output gradients and adds the products to the sums of the transformed gradient, which it
/// transforms back at the end. A block's products are summed from 0 before they join the sums, so rounding
/// grows with the length of a block and the number of blocks, not of all tiles.
class WinogradWeightGradient final : public Kernel {
 public:
  explicit WinogradWeightGradient(const Correlation& correlation)
      : c_(correlation), transforms_(correlation.transforms()), tiles_(correlation.result, correlation.tile) {
    constexpr std::int64_t least_channels = 96;  // so that transforming the pixels again costs 7% at most
    parts_ = parts_of_channels(c_.result.channels, least_channels, c_.operations(), c_.weight_bytes());
    const std::int64_t columns = widest_part();
    block_tiles_ = std::min<std::int64_t>(tiles_.count, gradient_block_tiles);
    pixel_step_ = element_step(c_.image.channels * block_tiles_);
    gradient_step_ = element_step(columns * block_tiles_);
    sum_step_ = element_step(c_.image.channels * columns);
    FloatArrays arrays;
    pixels_ = arrays.add(elements() * pixel_step_);
    gradients_ = arrays.add(elements() * gradient_step_);
    sums_ = arrays.add(elements() * sum_step_);
    zeros_ = arrays.add(std::max(c_.image.channels, c_.result.channels));
    scratch_bytes_ = arrays.bytes();
  }

  int parts() const override { return static_cast<int>(parts_); }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  void run(const KernelCall& call) override {
    const auto [first_channel, end_channel] = channels_of(call.part);
    auto* scratch = reinterpret_cast<float*>(call.scratch);
    std::fill_n(scratch + zeros_, std::max(c_.image.channels, c_.result.channels), 0.0F);
    const Panels panels(end_channel - first_channel);
    if (panels.columns() > end_channel - first_channel) {  // the last panel's unused columns
      std::fill_n(scratch + gradients_, elements() * gradient_step_, 0.0F);
    }
    const std::int64_t blocks = (tiles_.count + block_tiles_ - 1) / block_tiles_;
    for (std::int64_t block = 0; block < blocks; ++block) {
      const auto [begin, end] = range_of_part(tiles_.count, 1, block, blocks);
      transform_block(call, begin, end, first_channel, panels, scratch);
      add_products(end - begin, panels, block > 0, scratch);
    }
    const std::int64_t output_step = c_.image.channels * c_.kernel_elements();
    for (const Panels::Panel& panel : panels) {
      for (std::int64_t c = 0; c < c_.image.channels; ++c) {
        transforms_.weight_gradient(
            scratch + sums_ + panel.first * c_.image.channels + c * panel.columns, sum_step_, panel.count,
            call.output<float>(0) + (first_channel + panel.first) * output_step + c * c_.kernel_elements(),
            output_step);
      }
    }
    if (c_.has_bias) add_up_bias(call, first_channel, end_channel);
  }

 private:
  /// Of a transformed tile.
  std::int64_t elements() const { return std::int64_t{transforms_.points} * transforms_.points; }
  std::pair<std::int64_t, std::int64_t> channels_of(std::int64_t part) const {
    return range_of_part(c_.result.channels, panel_quantum, part, parts_);
  }
  std::int64_t widest_part() const {
    std::int64_t widest = 0;
    for (std::int64_t part = 0; part < parts_; ++part) {
      const auto [begin, end] = channels_of(part);
      widest = std::max(widest, Panels(end - begin).columns());
    }
    return widest;
  }

  void transform_block(const KernelCall& call, std::int64_t begin, std::int64_t end,
                       std::int64_t first_channel, const Panels& panels, float* scratch) const {
    std::array<const float*, most_points * most_points> pixels;
    for (std::int64_t index = begin; index < end; ++index) {
      const TileGrid::Tile tile = tiles_.at(index);
      gather_pixels(call.input<float>(0), c_.image, tile.sample, tile.row - c_.top, tile.column - c_.left,
                    transforms_.points, scratch + zeros_, pixels.data());
      transforms_.input(pixels.data(), c_.image.channels,
                        scratch + pixels_ + (index - begin) * c_.image.channels, pixel_step_);
      gather_pixels(call.input<float>(1), c_.result, tile.sample, tile.row, tile.column, c_.tile,
                    scratch + zeros_, pixels.data());
      for (const Panels::Panel& panel : panels) {
        transforms_.output_gradient(
            pixels.data(), first_channel + panel.first, panel.count,
            scratch + gradients_ + panel.first * block_tiles_ + (index - begin) * panel.columns,
            gradient_step_);
      }
    }
  }

  void add_products(std::int64_t tiles, const Panels& panels, bool add_to_c, float* scratch) const {
    for (std::int64_t element = 0; element < elements(); ++element) {
      for (const Panels::Panel& panel : panels) {
        PanelProduct product;
        product.a = scratch + pixels_ + element * pixel_step_;
        product.a_row = 1;
        product.a_depth = c_.image.channels;
        product.b = scratch + gradients_ + element * gradient_step_ + panel.first * block_tiles_;
        product.c = scratch + sums_ + element * sum_step_ + panel.first * c_.image.channels;
        product.c_row = panel.columns;
        product.rows = c_.image.channels;
        product.depth = tiles;
        product.columns = panel.columns;
        product.add_to_c = add_to_c;
        multiply_panel(product);
      }
    }
  }

  void add_up_bias(const KernelCall& call, std::int64_t first_channel, std::int64_t end_channel) const {
    const PixelGrid& grid = c_.result;
    const std::int64_t pixels = grid.samples * grid.height * grid.width;
    const float* gradient = call.input<float>(1) + first_channel;
    float* sums = call.output<float>(1) + first_channel;
    const std::int64_t count = end_channel - first_channel;
    std::fill_n(sums, count, 0.0F);
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      for (std::int64_t c = 0; c < count; ++c) sums[c] += gradient[pixel * grid.channels + c];
    }
  }

  Correlation c_;
  const WinogradTransforms& transforms_;
  TileGrid tiles_;
  std::int64_t parts_ = 1;
  std::int64_t block_tiles_ = 0;
  std::int64_t pixel_step_ = 0;
  std::int64_t gradient_step_ = 0;
  std::int64_t sum_step_ = 0;
  // Places in the scratch memory.
  std::int64_t pixels_ = 0;
  std::int64_t gradients_ = 0;
  std::int64_t sums_ = 0;
  std::int64_t zeros_ = 0;
  std::size_t scratch_bytes_ = 0;
};

Correlation correlation_of(const Shape& image, const Shape& weight, const Shape& result,
                           const Conv2dOptions& options, int tile) {
  Correlation correlation;
  correlation.image = grid_of(image);
  correlation.result = grid_of(result);
  correlation.top = options.padding[0];
  correlation.left = options.padding[1];
  correlation.kernel = static_cast<int>(weight[2]);
  correlation.tile = tile;
  return correlation;
}

}  // namespace

bool winograd_applies(const Shape& weight, const Conv2dOptions& options, int tile) {
  return options.stride == std::array<std::int64_t, 2>{1, 1} &&
         options.dilation == std::array<std::int64_t, 2>{1, 1} && options.groups == 1 &&
         weight[2] == weight[3] && weight[2] <= 5 &&
         winograd_transforms(static_cast<int>(weight[2]), tile) != nullptr;
}

std::unique_ptr<Kernel> winograd_convolution(const Shape& image, const Shape& weight, const Shape& output,
                                             const Conv2dOptions& options, bool has_bias, int tile) {
  Correlation correlation = correlation_of(image, weight, output, options, tile);
  correlation.weight_steps = {weight[1] * correlation.kernel_elements(), correlation.kernel_elements(),
                              false};
  correlation.has_bias = has_bias;
  return std::make_unique<WinogradCorrelation>(correlation);
}

std::unique_ptr<Kernel> winograd_input_gradient(const Shape& image, const Shape& weight, const Shape& output,
                                                const Conv2dOptions& options, int tile) {
  if (winograd_transposed_is_less(image, weight, output, tile)) {
    return winograd_transposed(image, weight, output, options, tile);
  }
  // With k = K - 1: dx[i] = sum over p of dy[i + top - p] w[p] = sum over q of dy[i - (k - top) + q] w[k - q]
  Correlation correlation = correlation_of(output, weight, image, options, tile);
  correlation.top = weight[2] - 1 - options.padding[0];
  correlation.left = weight[3] - 1 - options.padding[1];
  correlation.weight_steps = {correlation.kernel_elements(), weight[1] * correlation.kernel_elements(), true};
  return std::make_unique<WinogradCorrelation>(correlation);
}

std::int64_t winograd_input_gradient_tiles(const Shape& image, const Shape& weight, const Shape& output,
                                           int tile) {
  const bool transposed = winograd_transposed_is_less(image, weight, output, tile);
  return TileGrid(grid_of(transposed ? output : image), tile).count;
}

std::unique_ptr<Kernel> winograd_weight_gradient(const Shape& image, const Shape& weight, const Shape& output,
                                                 const Conv2dOptions& options, bool has_bias, int tile) {
  Correlation correlation = correlation_of(image, weight, output, options, tile);
  correlation.has_bias = has_bias;
  return std::make_unique<WinogradWeightGradient>(correlation);
}

}  // namespace purine::cpu
