#include "purine/backend/cpu/convolution_loops.h"

#include <algorithm>
#include <utility>

#include "purine/backend/cpu/image_strides.h"

namespace purine::cpu {
namespace {

/// Every product of a convolution: which element of the image meets which of the weight for which of the
/// output.
class Products {
 public:
  Products(const Shape& image, const Shape& weight, const Shape& output, const ops::Conv2dOptions& options,
           Layout layout)
      : image_(image),
        weight_(weight),
        output_(output),
        options_(options),
        image_strides_(image, layout),
        output_strides_(output, layout) {}

  const Shape& image() const { return image_; }
  const Shape& weight() const { return weight_; }
  const Shape& output() const { return output_; }

  /// Calls function(output channel, output offset) for every element of the output.
  template <typename Function>
  void for_each_output(Function function) const {
    for (std::int64_t n = 0; n < output_[0]; ++n) {
      for (std::int64_t o = 0; o < output_[1]; ++o) {
        for (std::int64_t i = 0; i < output_[2]; ++i) {
          for (std::int64_t j = 0; j < output_[3]; ++j) {
            function(o, n * output_strides_.sample + o * output_strides_.channel + i * output_strides_.row +
                            j * output_strides_.column);
          }
        }
      }
    }
  }

  /// Calls function(image offset, weight offset, output offset) for every product.
  template <typename Function>
  void for_each(Function function) const {
    std::int64_t weight = 0;
    for (std::int64_t o = 0; o < weight_[0]; ++o) {
      const std::int64_t group = o / (weight_[0] / options_.groups);
      for (std::int64_t c = 0; c < weight_[1]; ++c) {
        for (std::int64_t p = 0; p < weight_[2]; ++p) {
          for (std::int64_t q = 0; q < weight_[3]; ++q) {
            for_pixels(group * weight_[1] + c, o, p, q, weight++, function);
          }
        }
      }
    }
  }

 private:
  /// The products of one weight: element (p, q) of the kernel between two channels.
  template <typename Function>
  void for_pixels(std::int64_t image_channel, std::int64_t output_channel, std::int64_t p, std::int64_t q,
                  std::int64_t weight, Function& function) const {
    const std::int64_t top = p * options_.dilation[0] - options_.padding[0];
    const std::int64_t left = q * options_.dilation[1] - options_.padding[1];
    const auto [first_row, last_row] = inside(top, options_.stride[0], image_[2], output_[2]);
    const auto [first_column, last_column] = inside(left, options_.stride[1], image_[3], output_[3]);
    for (std::int64_t n = 0; n < output_[0]; ++n) {
      for (std::int64_t i = first_row; i < last_row; ++i) {
        const std::int64_t image = n * image_strides_.sample + image_channel * image_strides_.channel +
                                   (i * options_.stride[0] + top) * image_strides_.row;
        const std::int64_t output =
            n * output_strides_.sample + output_channel * output_strides_.channel + i * output_strides_.row;
        for (std::int64_t j = first_column; j < last_column; ++j) {
          function(image + (j * options_.stride[1] + left) * image_strides_.column, weight,
                   output + j * output_strides_.column);
        }
      }
    }
  }

  /// The positions [first, second) of a window whose element `offset` lies in the image.
  static std::pair<std::int64_t, std::int64_t> inside(std::int64_t offset, std::int64_t stride,
                                                      std::int64_t extent, std::int64_t positions) {
    std::int64_t first = 0;
    while (first < positions && first * stride + offset < 0) ++first;
    std::int64_t last = first;
    while (last < positions && last * stride + offset < extent) ++last;
    return {first, last};
  }

  Shape image_;
  Shape weight_;
  Shape output_;
  ops::Conv2dOptions options_;
  ImageStrides image_strides_;
  ImageStrides output_strides_;
};

}  // namespace

std::unique_ptr<Kernel> convolution_loops(const Shape& image, const Shape& weight, const Shape& output,
                                          const ops::Conv2dOptions& options, Layout layout, bool has_bias) {
  const Products products(image, weight, output, options, layout);
  return make_kernel([products, has_bias](const KernelCall& call) {
    const double* x = call.input<double>(0);
    const double* w = call.input<double>(1);
    const double* bias = has_bias ? call.input<double>(2) : nullptr;
    double* y = call.output<double>(0);
    products.for_each_output(
        [&](std::int64_t channel, std::int64_t at) { y[at] = has_bias ? bias[channel] : 0; });
    products.for_each([&](std::int64_t image_at, std::int64_t weight_at, std::int64_t output_at) {
      y[output_at] += x[image_at] * w[weight_at];
    });
  });
}

std::unique_ptr<Kernel> convolution_input_gradient_loops(const Shape& image, const Shape& weight,
                                                         const Shape& output,
                                                         const ops::Conv2dOptions& options, Layout layout) {
  const Products products(image, weight, output, options, layout);
  return make_kernel([products](const KernelCall& call) {
    const double* dy = call.input<double>(0);
    const double* w = call.input<double>(1);
    double* dx = call.output<double>(0);
    std::fill_n(dx, products.image().elements(), 0.0);
    products.for_each([&](std::int64_t image_at, std::int64_t weight_at, std::int64_t output_at) {
      dx[image_at] += dy[output_at] * w[weight_at];
    });
  });
}

std::unique_ptr<Kernel> convolution_weight_gradient_loops(const Shape& image, const Shape& weight,
                                                          const Shape& output,
                                                          const ops::Conv2dOptions& options, Layout layout,
                                                          bool has_bias) {
  const Products products(image, weight, output, options, layout);
  return make_kernel([products, has_bias](const KernelCall& call) {
    const double* x = call.input<double>(0);
    const double* dy = call.input<double>(1);
    double* dw = call.output<double>(0);
    std::fill_n(dw, products.weight().elements(), 0.0);
    products.for_each([&](std::int64_t image_at, std::int64_t weight_at, std::int64_t output_at) {
      dw[weight_at] += x[image_at] * dy[output_at];
    });
    if (!has_bias) return;
    double* dbias = call.output<double>(1);
    std::fill_n(dbias, products.output()[1], 0.0);
    products.for_each_output([&](std::int64_t channel, std::int64_t at) { dbias[channel] += dy[at]; });
  });
}

}  // namespace purine::cpu
