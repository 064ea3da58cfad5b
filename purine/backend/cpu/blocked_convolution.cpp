#include "purine/backend/cpu/blocked_convolution.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "purine/backend/cpu/batch_parts.h"
#include "purine/backend/cpu/packed_weights.h"
#include "purine/backend/cpu/panel_product.h"
#include "purine/backend/cpu/winograd_layout.h"

namespace purine::cpu {
namespace {

/// What an element of the kernel adds to a result: element `index` of the kernel times the source's pixel at
/// a distance.
struct Tap {
  std::int64_t index;
  std::int64_t row;
  std::int64_t column;
};

/// Results that have the same taps: those at rows row, row + stride, … and likewise for columns. The one at
/// (row + i stride, column + j stride) has taps at (i * step + tap.row, j * step + tap.column) of the source.
struct ResultClass {
  std::int64_t row;
  std::int64_t column;
  std::int64_t height;  ///< results of a column
  std::int64_t width;   ///< results of a row
  std::vector<Tap> taps;
};

/// A convolution or its gradient by the image: what results are made of.
struct Correlation {
  PixelGrid source;
  PixelGrid result;
  std::array<std::int64_t, 2> result_stride;  ///< from one result of a class to the next
  std::array<std::int64_t, 2> source_step;    ///< from the source's pixels of one result to those of the next
  std::vector<ResultClass> classes;
  std::int64_t taps = 0;  ///< of the kernel
  /// Floats of the weight from one channel of the source, and of the result, to the next; from one element of
  /// the kernel to the next it is 1.
  std::int64_t source_weights = 0;
  std::int64_t result_weights = 0;
  double operations = 0;
  bool has_bias = false;
};

/// A part has some results of each class.
class BlockedCorrelation final : public Kernel {
 public:
  explicit BlockedCorrelation(Correlation correlation)
      : c_(std::move(correlation)),
        packed_({c_.source.channels, c_.result.channels, c_.taps, c_.source_weights, c_.result_weights}) {
    const std::int64_t pixels = c_.result.samples * c_.result.height * c_.result.width;
    parts_ = convolution_parts(pixels, c_.operations, static_cast<double>(pixels));
    const std::int64_t channels = c_.source.channels;
    channel_steps_ = (channels + most_depth - 1) / most_depth;
    taps_of_step_ = std::max<std::int64_t>(1, most_depth / channels);
    const std::int64_t depth = channel_steps_ > 1 ? most_depth : std::min(taps_of_step_, c_.taps) * channels;
    copied_row_ = element_step(depth);
    FloatArrays arrays;
    weights_ = arrays.add(packed_.floats());
    square_ = arrays.add(packed_.square_floats());
    if (!reads_in_place()) copied_ = arrays.add(most_rows * copied_row_);
    if (!writes_in_place()) results_ = arrays.add(most_rows * c_.result.channels);
    scratch_bytes_ = arrays.bytes();
  }

  int parts() const override { return parts_; }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::size_t kept_bytes() const override {
    return static_cast<std::size_t>(packed_.floats()) * sizeof(float);
  }
  void run(const KernelCall& call) override {
    auto* scratch = reinterpret_cast<float*>(call.scratch);
    if (!call.scratch_kept) packed_.pack(call.input<float>(1), scratch + square_, scratch + weights_);
    for (const ResultClass& some : c_.classes) {
      const auto [first, end] =
          range_of_part(c_.result.samples * some.height * some.width, row_quantum, call.part, parts_);
      const std::int64_t blocks = (end - first + most_rows - 1) / most_rows;
      for (std::int64_t block = 0; block < blocks; ++block) {
        const auto [block_first, block_end] = range_of_part(end - first, row_quantum, block, blocks);
        run_block(call, some, first + block_first, first + block_end, scratch);
      }
    }
  }

 private:
  /// True where the source's pixels are the rows of the product.
  bool reads_in_place() const {
    return c_.taps == 1 && c_.source_step == std::array<std::int64_t, 2>{1, 1} &&
           !c_.classes[0].taps.empty() && c_.classes[0].taps[0].row == 0 &&
           c_.classes[0].taps[0].column == 0 && c_.source.height == c_.result.height &&
           c_.source.width == c_.result.width;
  }
  /// True where neighbouring results lie beside each other.
  bool writes_in_place() const { return c_.result_stride == std::array<std::int64_t, 2>{1, 1}; }

  /// The place of a result of a class, counted in pixels.
  struct Place {
    std::int64_t sample;
    std::int64_t row;
    std::int64_t column;
  };
  static Place place_of(const ResultClass& some, std::int64_t index) {
    return {index / (some.height * some.width), index / some.width % some.height, index % some.width};
  }

  void run_block(const KernelCall& call, const ResultClass& some, std::int64_t first, std::int64_t end,
                 float* scratch) const {
    const std::int64_t rows = end - first;
    const std::int64_t channels = c_.result.channels;
    float* result = writes_in_place() ? call.output<float>(0) + first * channels : scratch + results_;
    bool adds = c_.has_bias;
    if (c_.has_bias) {
      for (std::int64_t row = 0; row < rows; ++row) {
        std::copy_n(call.input<float>(2), channels, result + row * channels);
      }
    } else if (some.taps.empty()) {
      std::fill_n(result, rows * channels, 0.0F);
    }
    const auto taps = static_cast<std::int64_t>(some.taps.size());
    for (std::int64_t tap = 0; tap < taps;) {
      // As many taps as have neighbouring weights and fit, or a part of the channels of one.
      std::int64_t tap_end = tap + 1;
      while (tap_end < taps && tap_end - tap < taps_of_step_ &&
             index_of(some, tap_end) == index_of(some, tap_end - 1) + 1) {
        ++tap_end;
      }
      for (std::int64_t step = 0; step < channel_steps_; ++step) {
        const auto [channel, channel_end] =
            range_of_part(c_.source.channels, panel_quantum, step, channel_steps_);
        add_products(call, some, {first, end}, {tap, tap_end}, {channel, channel_end}, adds, result, scratch);
        adds = true;
      }
      tap = tap_end;
    }
    if (!writes_in_place()) write_results(some, first, end, result, call.output<float>(0));
  }

  static std::int64_t index_of(const ResultClass& some, std::int64_t tap) {
    return some.taps[static_cast<std::size_t>(tap)].index;
  }

  struct Range {
    std::int64_t first;
    std::int64_t end;
    std::int64_t count() const { return end - first; }
  };

  void add_products(const KernelCall& call, const ResultClass& some, Range rows, Range taps, Range channels,
                    bool adds, float* result, float* scratch) const {
    PanelProduct product;
    product.a_depth = 1;
    product.c_row = c_.result.channels;
    product.rows = rows.count();
    product.depth = taps.count() * channels.count();
    product.add_to_c = adds;
    ReadAhead ahead;
    if (reads_in_place()) {
      product.a = call.input<float>(0) + rows.first * c_.source.channels + channels.first;
      product.a_row = c_.source.channels;
      const std::int64_t pixels = c_.source.samples * c_.source.height * c_.source.width;
      const std::int64_t next_rows = std::min(most_rows, pixels - rows.end);
      ahead = ReadAhead(product.a + rows.count() * product.a_row, next_rows, channels.count(), product.a_row);
    } else {
      copy_pixels(call.input<float>(0), some, rows, taps, channels, scratch + copied_);
      product.a = scratch + copied_;
      product.a_row = copied_row_;
    }
    packed_.multiply(product, scratch + weights_, index_of(some, taps.first), channels.first, result, ahead);
  }

  /// Of each result, the source's pixels under some taps one after the other; outside of the image they are
  /// 0.
  void copy_pixels(const float* source, const ResultClass& some, Range rows, Range taps, Range channels,
                   float* to) const {
    const PixelGrid& grid = c_.source;
    for (std::int64_t index = rows.first; index < rows.end; ++index, to += copied_row_) {
      const auto [sample, i, j] = place_of(some, index);
      float* at = to;
      for (std::int64_t t = taps.first; t < taps.end; ++t, at += channels.count()) {
        const Tap& tap = some.taps[static_cast<std::size_t>(t)];
        const std::int64_t row = i * c_.source_step[0] + tap.row;
        const std::int64_t column = j * c_.source_step[1] + tap.column;
        if (row < 0 || row >= grid.height || column < 0 || column >= grid.width) {
          std::fill_n(at, channels.count(), 0.0F);
        } else {
          const std::int64_t pixel = (sample * grid.height + row) * grid.width + column;
          std::copy_n(source + pixel * grid.channels + channels.first, channels.count(), at);
        }
      }
    }
  }

  void write_results(const ResultClass& some, std::int64_t first, std::int64_t end, const float* results,
                     float* to) const {
    const PixelGrid& grid = c_.result;
    for (std::int64_t index = first; index < end; ++index, results += grid.channels) {
      const auto [sample, i, j] = place_of(some, index);
      const std::int64_t row = some.row + i * c_.result_stride[0];
      const std::int64_t column = some.column + j * c_.result_stride[1];
      std::copy_n(results, grid.channels,
                  to + ((sample * grid.height + row) * grid.width + column) * grid.channels);
    }
  }

  Correlation c_;
  PackedWeights packed_;
  int parts_ = 1;
  std::int64_t channel_steps_ = 1;
  std::int64_t taps_of_step_ = 1;
  /// Floats from a copied result's pixels to the next one's: an odd number of cache lines, so that those of a
  /// block of rows do not all fall into the same few sets of the cache.
  std::int64_t copied_row_ = 0;
  // Places in the scratch memory.
  std::int64_t weights_ = 0;
  std::int64_t square_ = 0;
  std::int64_t copied_ = 0;
  std::int64_t results_ = 0;
  std::size_t scratch_bytes_ = 0;
};

double operations_of(const Shape& weight, const Shape& output) {
  return 2.0 * static_cast<double>(output.elements()) *
         static_cast<double>(weight[1] * weight[2] * weight[3]);
}

}  // namespace

bool blocked_applies(const Shape& image, const Shape& weight, const ops::Conv2dOptions& options) {
  return options.groups == 1 && image[1] % panel_quantum == 0 && weight[0] % panel_quantum == 0;
}

std::unique_ptr<Kernel> blocked_convolution(const Shape& image, const Shape& weight, const Shape& output,
                                            const ops::Conv2dOptions& options, bool has_bias) {
  const std::int64_t taps = weight[2] * weight[3];
  ResultClass all{0, 0, output[2], output[3], {}};
  for (std::int64_t p = 0; p < weight[2]; ++p) {
    for (std::int64_t q = 0; q < weight[3]; ++q) {
      all.taps.push_back({p * weight[3] + q, p * options.dilation[0] - options.padding[0],
                          q * options.dilation[1] - options.padding[1]});
    }
  }
  return std::make_unique<BlockedCorrelation>(Correlation{grid_of(image),
                                                          grid_of(output),
                                                          {1, 1},
                                                          options.stride,
                                                          {std::move(all)},
                                                          taps,
                                                          taps,
                                                          weight[1] * taps,
                                                          operations_of(weight, output),
                                                          has_bias});
}

std::unique_ptr<Kernel> blocked_input_gradient(const Shape& image, const Shape& weight, const Shape& output,
                                               const ops::Conv2dOptions& options) {
  // Output i has pixel i * stride - before + p * dilation of the image for element p of the kernel. So pixel
  // a + u * stride has output u + (a + before - p * dilation) / stride, where that is a whole number.
  const auto& [stride_rows, stride_columns] = options.stride;
  const std::int64_t taps = weight[2] * weight[3];
  std::vector<ResultClass> classes;
  for (std::int64_t a = 0; a < std::min(stride_rows, image[2]); ++a) {
    for (std::int64_t b = 0; b < std::min(stride_columns, image[3]); ++b) {
      ResultClass some{a,
                       b,
                       (image[2] - a + stride_rows - 1) / stride_rows,
                       (image[3] - b + stride_columns - 1) / stride_columns,
                       {}};
      for (std::int64_t p = 0; p < weight[2]; ++p) {
        for (std::int64_t q = 0; q < weight[3]; ++q) {
          const std::int64_t row = a + options.padding[0] - p * options.dilation[0];
          const std::int64_t column = b + options.padding[1] - q * options.dilation[1];
          if (row % stride_rows != 0 || column % stride_columns != 0) continue;
          some.taps.push_back({p * weight[3] + q, row / stride_rows, column / stride_columns});
        }
      }
      classes.push_back(std::move(some));
    }
  }
  return std::make_unique<BlockedCorrelation>(Correlation{grid_of(output),
                                                          grid_of(image),
                                                          options.stride,
                                                          {1, 1},
                                                          std::move(classes),
                                                          taps,
                                                          weight[1] * taps,
                                                          taps,
                                                          operations_of(weight, output),
                                                          false});
}

}  // namespace purine::cpu
