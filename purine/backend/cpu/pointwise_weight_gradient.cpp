#include "purine/backend/cpu/pointwise_weight_gradient.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "purine/backend/cpu/batch_parts.h"
#include "purine/backend/cpu/panel_product.h"
#include "purine/backend/cpu/partial_sums.h"
#include "purine/backend/cpu/winograd_layout.h"

namespace purine::cpu {
namespace {

/// Pixels of a block. The sums are read and written once a block.
constexpr std::int64_t most_block_pixels = 256;
/// Bytes of a block of image and gradient: what stays in a second-level cache beside the sums.
constexpr std::int64_t block_bytes = 512 << 10;

class PointwiseWeightGradient final : public Kernel {
 public:
  explicit PointwiseWeightGradient(const ConvolutionProblem& problem)
      : channels_(problem.image[1]),
        results_(problem.output[1]),
        pixels_(problem.output[0] * problem.output[2] * problem.output[3]),
        has_bias_(problem.has_bias),
        panels_(channels_),
        panel_parts_(parts_of_panels(problem)),
        pixel_parts_(panel_parts_ > 1 ? 1 : parts_of_pixels(problem)),
        sums_(problem.has_bias ? std::vector{problem.weight.elements(), results_}
                               : std::vector{problem.weight.elements()},
              pixel_parts_) {
    const std::int64_t pixel_bytes = (channels_ + results_) * static_cast<std::int64_t>(sizeof(float));
    block_pixels_ = std::clamp<std::int64_t>(block_bytes / pixel_bytes, 64, most_block_pixels);
  }

  int parts() const override { return pixel_parts_ * panel_parts_; }
  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(block_pixels_ * panels_.columns()) * sizeof(float);
  }
  void run(const KernelCall& call) override {
    if (panel_parts_ > 1) {
      // Each part has some panels of the sums, and all pixels.
      const auto [first, end] = batch_range(panel_count(), call.part, panel_parts_);
      add_products(call, 0, pixels_, first, end, call.output<float>(0));
      if (has_bias_ && call.part == 0) add_up_bias(call, 0, pixels_, call.output<float>(1));
      return;
    }
    sums_.run(call, [&] {
      const auto [begin, end] = batch_range(pixels_, call.part, pixel_parts_);
      const bool in_output = call.part == 0;
      add_products(call, begin, end, 0, panel_count(),
                   in_output ? call.output<float>(0) : sums_.place(call.part, 0));
      if (has_bias_) {
        add_up_bias(call, begin, end, in_output ? call.output<float>(1) : sums_.place(call.part, 1));
      }
    });
  }

 private:
  /// Sums over many pixels gain from parts of them; the memory for their sums stays below a mebibyte.
  static int parts_of_pixels(const ConvolutionProblem& problem) {
    constexpr double operations_per_part = 50e6;
    constexpr std::int64_t most_elements = 1 << 18;
    const std::int64_t pixels = problem.output[0] * problem.output[2] * problem.output[3];
    const std::int64_t parts = batch_parts(pixels, problem.operations(), operations_per_part);
    return static_cast<int>(std::min(parts, 1 + most_elements / problem.weight.elements()));
  }
  /// Where that is too few parts, those of the panels: each reads the whole gradient.
  int parts_of_panels(const ConvolutionProblem& problem) const {
    constexpr double operations_per_part = 50e6;
    const int few = parts_of_pixels(problem);
    const int parts = few >= 3 ? 1 : batch_parts(panel_count(), problem.operations(), operations_per_part);
    return parts > few ? parts : 1;
  }
  std::int64_t panel_count() const { return panels_.end() - panels_.begin(); }

  /// The products of pixels [begin, end) for some panels of channels.
  void add_products(const KernelCall& call, std::int64_t begin, std::int64_t end, std::int64_t first_panel,
                    std::int64_t end_panel, float* sums) const {
    const std::int64_t blocks = (end - begin + block_pixels_ - 1) / block_pixels_;
    auto* packed = reinterpret_cast<float*>(call.scratch);
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::int64_t first = begin + (end - begin) * block / blocks;
      const std::int64_t count = begin + (end - begin) * (block + 1) / blocks - first;
      const float* image = call.input<float>(0) + first * channels_;
      for (std::int64_t index = first_panel; index < end_panel; ++index) {
        const Panels::Panel& panel = panels_.begin()[index];
        float* const to = packed + panel.first * block_pixels_;
        for (std::int64_t pixel = 0; pixel < count; ++pixel) {
          std::copy_n(image + pixel * channels_ + panel.first, panel.columns, to + pixel * panel.columns);
        }
        PanelProduct product;
        product.a = call.input<float>(1) + first * results_;
        product.a_row = 1;
        product.a_depth = results_;
        product.b = to;
        product.c = sums + panel.first;
        product.c_row = channels_;
        product.rows = results_;
        product.depth = count;
        product.columns = panel.columns;
        product.add_to_c = block > 0;
        multiply_panel(product);
      }
    }
  }

  void add_up_bias(const KernelCall& call, std::int64_t begin, std::int64_t end, float* sums) const {
    const float* gradient = call.input<float>(1);
    std::fill_n(sums, results_, 0.0F);
    for (std::int64_t pixel = begin; pixel < end; ++pixel) {
      for (std::int64_t o = 0; o < results_; ++o) sums[o] += gradient[pixel * results_ + o];
    }
  }

  std::int64_t channels_;
  std::int64_t results_;
  std::int64_t pixels_;
  bool has_bias_;
  Panels panels_;
  int panel_parts_;
  int pixel_parts_;
  PartialSums sums_;
  std::int64_t block_pixels_ = 0;
};

}  // namespace

bool pointwise_weight_gradient_applies(const ConvolutionProblem& problem) {
  // Panels of whole quanta, which lie in the sums as they are.
  return problem.layout == Layout::channels_last && problem.is_pointwise() &&
         problem.image[1] % panel_quantum == 0;
}

std::unique_ptr<Kernel> pointwise_weight_gradient(const ConvolutionProblem& problem) {
  PURINE_CHECK(pointwise_weight_gradient_applies(problem));
  return std::make_unique<PointwiseWeightGradient>(problem);
}

}  // namespace purine::cpu
