#include <algorithm>
#include <utility>

#include "purine/backend/cpu/batch_parts.h"
#include "purine/backend/cpu/blocked_convolution.h"
#include "purine/backend/cpu/packed_weights.h"
#include "purine/backend/cpu/panel_product.h"

namespace purine::cpu {
namespace {

/// The pixels of an input, each a row, times packed weights, in the pixels of an output.
struct PixelProduct {
  int source = 0;  ///< which input
  int weight = 0;  ///< which input
  int result = 0;  ///< which output
  bool adds = false;
  PackedWeights packed;
  std::int64_t place = 0;  ///< of the packed weights in the scratch memory
};

/// Works on some pixels with all siblings, one after the other, while they are in the cache. A part has some
/// pixels.
class BlockedSiblings final : public Kernel {
 public:
  /// With `summand`, of the inputs, output 0 begins as that.
  BlockedSiblings(std::int64_t pixels, std::vector<PixelProduct> products, int summand)
      : pixels_(pixels), products_(std::move(products)), summand_(summand) {
    std::int64_t weights = 0;
    std::int64_t square = 0;
    FloatArrays arrays;
    for (PixelProduct& product : products_) {
      product.place = arrays.add(product.packed.floats());
      weights += product.packed.order().source_channels * product.packed.order().result_channels;
      square = std::max(square, product.packed.square_floats());
    }
    kept_bytes_ = arrays.bytes();
    square_ = arrays.add(square);
    scratch_bytes_ = arrays.bytes();
    const auto pixel_count = static_cast<double>(pixels);
    parts_ = convolution_parts(pixels, 2 * pixel_count * static_cast<double>(weights), pixel_count);
  }

  int parts() const override { return parts_; }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::size_t kept_bytes() const override { return kept_bytes_; }
  void run(const KernelCall& call) override {
    auto* scratch = reinterpret_cast<float*>(call.scratch);
    if (!call.scratch_kept) {
      for (const PixelProduct& product : products_) {
        product.packed.pack(call.input<float>(product.weight), scratch + square_, scratch + product.place);
      }
    }
    const auto [first, end] = range_of_part(pixels_, row_quantum, call.part, parts_);
    const std::int64_t blocks = (end - first + most_rows - 1) / most_rows;
    for (std::int64_t block = 0; block < blocks; ++block) {
      const auto [block_first, block_end] = range_of_part(end - first, row_quantum, block, blocks);
      run_block(call, first + block_first, first + block_end);
    }
  }

 private:
  void run_block(const KernelCall& call, std::int64_t first, std::int64_t end) const {
    if (summand_ >= 0 && call.inputs[static_cast<std::size_t>(summand_)] != call.outputs[0]) {
      const std::int64_t channels = products_[0].packed.order().result_channels;
      std::copy(call.input<float>(summand_) + first * channels, call.input<float>(summand_) + end * channels,
                call.output<float>(0) + first * channels);
    }
    int source = -1;
    for (const PixelProduct& product : products_) {
      multiply(call, product, first, end, product.source != source);
      source = product.source;
    }
  }

  /// `brings`: what the next block has of the source is still to be brought into the cache.
  void multiply(const KernelCall& call, const PixelProduct& pixels, std::int64_t first, std::int64_t end,
                bool brings) const {
    const auto* weights = reinterpret_cast<const float*>(call.scratch) + pixels.place;
    PanelProduct product;
    product.a_row = pixels.packed.order().source_channels;
    product.a_depth = 1;
    product.c_row = pixels.packed.order().result_channels;
    product.rows = end - first;
    product.add_to_c = pixels.adds;
    const std::int64_t next_rows = brings ? std::min(most_rows, pixels_ - end) : 0;
    const std::int64_t steps = (product.a_row + most_depth - 1) / most_depth;
    for (std::int64_t step = 0; step < steps; ++step) {
      const auto [channel, channel_end] = range_of_part(product.a_row, panel_quantum, step, steps);
      const float* source = call.input<float>(pixels.source) + channel;
      product.a = source + first * product.a_row;
      product.depth = channel_end - channel;
      ReadAhead ahead(source + end * product.a_row, next_rows, product.depth, product.a_row);
      pixels.packed.multiply(product, weights, 0, channel,
                             call.output<float>(pixels.result) + first * product.c_row, ahead);
      product.add_to_c = true;
    }
  }

  std::int64_t pixels_;
  std::vector<PixelProduct> products_;
  int summand_;
  int parts_ = 1;
  std::int64_t square_ = 0;  ///< a place in the scratch memory
  std::size_t kept_bytes_ = 0;
  std::size_t scratch_bytes_ = 0;
};

std::int64_t pixels_of(const Shape& image) {
  return image[0] * image[2] * image[3];
}

constexpr int no_summand = -1;

}  // namespace

std::unique_ptr<Kernel> blocked_siblings(const Shape& image, const std::vector<std::int64_t>& results) {
  const std::int64_t channels = image[1];
  std::vector<PixelProduct> products;
  for (const std::int64_t result : results) {
    const int sibling = static_cast<int>(products.size());
    products.push_back({0, sibling + 1, sibling, false, PackedWeights({channels, result, 1, 1, channels})});
  }
  return std::make_unique<BlockedSiblings>(pixels_of(image), std::move(products), no_summand);
}

std::unique_ptr<Kernel> blocked_siblings_gradient(const Shape& image,
                                                  const std::vector<std::int64_t>& results, bool adds) {
  const std::int64_t channels = image[1];
  const int count = static_cast<int>(results.size());
  std::vector<PixelProduct> products;
  for (const std::int64_t result : results) {
    const int sibling = static_cast<int>(products.size());
    products.push_back({sibling, count + sibling, 0, adds || sibling > 0,
                        PackedWeights({result, channels, 1, channels, 1})});
  }
  return std::make_unique<BlockedSiblings>(pixels_of(image), std::move(products),
                                           adds ? 2 * count : no_summand);
}

}  // namespace purine::cpu
