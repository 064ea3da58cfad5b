#include <algorithm>
#include <cstring>

#include "purine/backend/cpu/batch_parts.h"
#include "purine/backend/cpu/blocked_convolution.h"
#include "purine/backend/cpu/panel_product.h"
#include "purine/backend/cpu/winograd_layout.h"

namespace purine::cpu {
namespace {

/// Pixels of the output whose products are summed up at a time: those of a panel of the image's channels,
/// with the block of rows that it meets, stay near a first-level cache, and sums are fetched for many of
/// them.
constexpr std::int64_t block_pixels = 192;

/// Copies few floats, a multiple of 16, without the call of a function.
void copy_lines(const float* from, std::int64_t floats, float* to) {
  constexpr std::int64_t line = 16;
  for (std::int64_t i = 0; i < floats; i += line) std::memcpy(to + i, from + i, line * sizeof(float));
}

/// A part has some channels of the output, or of the image if those are more, and all pixels, whose products
/// it adds up block by block.
class BlockedWeightGradient final : public Kernel {
 public:
  BlockedWeightGradient(const Shape& image, const Shape& weight, const Shape& output,
                        const ops::Conv2dOptions& options, bool has_bias)
      : image_(grid_of(image)),
        output_(grid_of(output)),
        kernel_height_(weight[2]),
        kernel_width_(weight[3]),
        options_(options),
        has_bias_(has_bias) {
    // So that copying the pixels of the other side again costs some percent at most.
    constexpr std::int64_t least_channels = 128;
    constexpr double least_operations = 1e8;
    const double operations =
        2.0 * static_cast<double>(output.elements()) * static_cast<double>(weight[1] * taps());
    parts_ = batch_parts(std::max(weight[0], weight[1]) / least_channels, operations, least_operations);
    std::int64_t most_outputs = 0;
    std::int64_t most_sums = 0;
    for (int part = 0; part < parts_; ++part) {
      const Share share = share_of(part);
      most_outputs = std::max(most_outputs, share.outputs());
      most_sums = std::max(most_sums, share.outputs() * share.channels());
    }
    FloatArrays arrays;
    gradients_ = arrays.add(block_pixels * element_step(most_outputs));
    panel_ = arrays.add(block_pixels * most_panel_columns);
    if (taps() > 1) sums_ = arrays.add(taps() * most_sums);
    scratch_bytes_ = arrays.bytes();
  }

  int parts() const override { return parts_; }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  void run(const KernelCall& call) override {
    const Share share = share_of(call.part);
    const Panels panels(share.channels());
    auto* scratch = reinterpret_cast<float*>(call.scratch);
    float* bias = has_bias_ && share.channel == 0 ? call.output<float>(1) + share.output : nullptr;
    if (bias != nullptr) std::fill_n(bias, share.outputs(), 0.0F);
    const std::int64_t pixels = output_.samples * output_.height * output_.width;
    const std::int64_t blocks = (pixels + block_pixels - 1) / block_pixels;
    for (std::int64_t block = 0; block < blocks; ++block) {
      const auto [first, end] = range_of_part(pixels, 1, block, blocks);
      copy_gradients(call.input<float>(1), first, end, share, bias, scratch + gradients_);
      add_products(call, first, end, share, panels, scratch);
    }
    if (taps() > 1) write_sums(scratch + sums_, share, call.output<float>(0));
  }

 private:
  std::int64_t taps() const { return kernel_height_ * kernel_width_; }

  /// True where each pixel of the output is made of that of the image alone.
  bool same_pixels() const {
    return taps() == 1 && options_.stride == std::array<std::int64_t, 2>{1, 1} &&
           image_.height == output_.height && image_.width == output_.width;
  }

  /// The channels of a part.
  struct Share {
    std::int64_t output;
    std::int64_t output_end;
    std::int64_t channel;
    std::int64_t channel_end;
    std::int64_t outputs() const { return output_end - output; }
    std::int64_t channels() const { return channel_end - channel; }
  };
  Share share_of(int part) const {
    if (output_.channels >= image_.channels) {
      const auto [first, end] = range_of_part(output_.channels, panel_quantum, part, parts_);
      return {first, end, 0, image_.channels};
    }
    const auto [first, end] = range_of_part(image_.channels, panel_quantum, part, parts_);
    return {0, output_.channels, first, end};
  }

  /// The output gradients of some pixels, an odd number of cache lines from one to the next, so that they do
  /// not all fall into the same few sets of the cache. Adds them to the bias's gradient.
  void copy_gradients(const float* gradient, std::int64_t first, std::int64_t end, const Share& share,
                      float* bias, float* to) const {
    for (std::int64_t pixel = first; pixel < end; ++pixel, to += element_step(share.outputs())) {
      copy_lines(gradient + pixel * output_.channels + share.output, share.outputs(), to);
      if (bias == nullptr) continue;
      for (std::int64_t o = 0; o < share.outputs(); ++o) bias[o] += to[o];
    }
  }

  void add_products(const KernelCall& call, std::int64_t first, std::int64_t end, const Share& share,
                    const Panels& panels, float* scratch) const {
    PanelProduct product;
    product.a = scratch + gradients_;
    product.a_row = 1;
    product.a_depth = element_step(share.outputs());
    product.b = scratch + panel_;
    product.rows = share.outputs();
    product.depth = end - first;
    product.add_to_c = first > 0;
    // With one tap, sums lie as the weight's gradient does.
    product.c_row = taps() > 1 ? share.channels() : image_.channels;
    const std::int64_t pixels = output_.samples * output_.height * output_.width;
    const std::int64_t next = std::min(block_pixels, pixels - end);
    ReadAhead gradients(call.input<float>(1) + end * output_.channels + share.output, next, share.outputs(),
                        output_.channels);
    ReadAhead image;
    if (same_pixels())
      image = ReadAhead(call.input<float>(0) + end * image_.channels + share.channel, next, share.channels(),
                        image_.channels);
    for (std::int64_t tap = 0; tap < taps(); ++tap) {
      float* sums = taps() > 1 ? scratch + sums_ + tap * share.outputs() * share.channels()
                               : call.output<float>(0) + share.output * image_.channels + share.channel;
      for (const Panels::Panel& panel : panels) {
        copy_pixels(call.input<float>(0) + share.channel + panel.first, first, end, tap, panel.columns,
                    scratch + panel_);
        product.c = sums + panel.first;
        product.columns = panel.columns;
        multiply_panel(product, gradients.done() ? &image : &gradients);
      }
    }
  }

  /// Some channels of the image's pixels under an element of the kernel; outside of the image they are 0.
  void copy_pixels(const float* image, std::int64_t first, std::int64_t end, std::int64_t tap,
                   std::int64_t channels, float* to) const {
    if (same_pixels()) {
      for (std::int64_t pixel = first; pixel < end; ++pixel, to += channels) {
        copy_lines(image + pixel * image_.channels, channels, to);
      }
      return;
    }
    const std::int64_t row_shift = tap / kernel_width_ * options_.dilation[0] - options_.padding[0];
    const std::int64_t column_shift = tap % kernel_width_ * options_.dilation[1] - options_.padding[1];
    for (std::int64_t pixel = first; pixel < end; ++pixel, to += channels) {
      const std::int64_t sample = pixel / (output_.height * output_.width);
      const std::int64_t row = pixel / output_.width % output_.height * options_.stride[0] + row_shift;
      const std::int64_t column = pixel % output_.width * options_.stride[1] + column_shift;
      if (row < 0 || row >= image_.height || column < 0 || column >= image_.width) {
        std::fill_n(to, channels, 0.0F);
      } else {
        const std::int64_t at = (sample * image_.height + row) * image_.width + column;
        copy_lines(image + at * image_.channels, channels, to);
      }
    }
  }

  /// From [tap][output][channel] to [output][channel][tap].
  void write_sums(const float* sums, const Share& share, float* weight) const {
    const std::int64_t step = share.outputs() * share.channels();
    for (std::int64_t o = 0; o < share.outputs(); ++o) {
      float* to = weight + ((share.output + o) * image_.channels + share.channel) * taps();
      const float* from = sums + o * share.channels();
      for (std::int64_t c = 0; c < share.channels(); ++c) {
        for (std::int64_t tap = 0; tap < taps(); ++tap) *to++ = from[tap * step + c];
      }
    }
  }

  PixelGrid image_;
  PixelGrid output_;
  std::int64_t kernel_height_;
  std::int64_t kernel_width_;
  ops::Conv2dOptions options_;
  bool has_bias_;
  int parts_ = 1;
  // Places in the scratch memory.
  std::int64_t gradients_ = 0;
  std::int64_t panel_ = 0;
  std::int64_t sums_ = 0;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> blocked_weight_gradient(const Shape& image, const Shape& weight, const Shape& output,
                                                const ops::Conv2dOptions& options, bool has_bias) {
  return std::make_unique<BlockedWeightGradient>(image, weight, output, options, has_bias);
}

}  // namespace purine::cpu
