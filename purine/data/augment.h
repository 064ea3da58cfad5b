// From decoded images to the numbers a network sees.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "purine/core/random.h"
#include "purine/data/dataset.h"
#include "purine/data/image.h"
#include "purine/data/resample.h"

namespace purine::data {

enum class Crop : std::uint8_t {
  none,
  center,          ///< the middle; an image that is smaller gets black around it
  random,          ///< anywhere, each place equally likely; an image that is smaller gets black around it
  random_resized,  ///< a random part of random area and aspect ratio, resized to the crop's size
};

/// `none`, `center`, `random`, `random_resized`.
std::string_view name_of(Crop crop);

/// What is done to each image, in this order: channels, resize, padding, crop, flip, normalise. The result is
/// f32 and planar (C, H, W): (value / 255 - mean) / deviation.
struct Augmentation {
  struct Size {
    std::int64_t height = 0;
    std::int64_t width = 0;
    Size() = default;
    Size(std::int64_t side) : height(side), width(side) {}
    Size(std::int64_t rows, std::int64_t columns) : height(rows), width(columns) {}
  };

  /// 1 makes grey of colours, 3 repeats grey; 0 takes the set's channels (3 for folders of images).
  std::int64_t channels = 0;
  /// The shorter side becomes this long, the other in proportion (rounded down, at least 1): bilinear, and
  /// averaging over all pixels that an output pixel covers where it shrinks. 0 leaves the size. Not with
  /// random_resized, which has a size of its own.
  std::int64_t resize = 0;
  Crop crop = Crop::none;
  /// Default: the size of the set's images, after `resize`, where they all have one.
  Size crop_size = {};
  /// Black pixels put around each side before a random crop.
  std::int64_t padding = 0;
  /// random_resized: bounds of the part's share of the image's area, and of its width / height. Up to 10
  /// draws (area uniform, ratio uniform in its logarithm) are tried until one fits, then the largest central
  /// part within the bounds is taken: torchvision's algorithm.
  std::array<double, 2> area = {0.08, 1.0};
  std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0};
  /// The probability that an image is mirrored left to right.
  double flip = 0.0;
  /// One value a channel, or one for all, in units of 0 to 1; empty is 0 and 1.
  std::vector<double> mean = {};
  std::vector<double> deviation = {};
  /// JPEG images are decoded at 1/2, 1/4 or 1/8 of their size where that is still at least twice the size in
  /// demand: about twice as fast on photographs of 12 million pixels, for a picture that differs by about
  /// half of one of 255 steps in the mean. False decodes all in full.
  bool scaled_decoding = true;

  /// Stable text of what differs from the defaults: `resize=256 crop=center[224, 224]`.
  std::string text() const;
};

/// Training on ImageNet-like photographs: random_resized to `side`, flips, ImageNet's means and deviations.
Augmentation photograph_training(std::int64_t side = 224);
/// Evaluation on the same: the shorter side to side * 256 / 224, the central square.
Augmentation photograph_evaluation(std::int64_t side = 224);

/// An Augmentation checked and made ready for a set's images; immutable, used by several threads at once.
class Augmenter {
 public:
  /// `set` is the images' size where they all have one. What doesn't fit throws Error("augmentation", …).
  Augmenter(Augmentation augmentation, std::optional<ImageSize> set);

  /// The size of every result.
  ImageSize output() const { return output_; }

  /// What is to be done to one image: drawn once its size is known, before it is decoded.
  struct Plan {
    int height = 0;  ///< of the whole image
    int width = 0;
    ResampleAxis rows;
    ResampleAxis columns;
    bool flipped = false;
    int eighths = 8;  ///< how large to decode it
  };
  /// The plan for sample `sample` in epoch `epoch`: random numbers are a function of the seed, the epoch and
  /// the sample alone, whatever batch it is in.
  Plan plan(int height, int width, std::uint64_t seed, std::int64_t epoch, std::int64_t sample) const;

  /// Storage that is used again from image to image, by one thread at a time.
  struct Workspace {
    ResampleWorkspace resample;
  };
  /// Carries out a plan. `image` is the whole one, decoded at plan.eighths; its channels may be converted in
  /// place. Element (c, y, x) goes to output[c * strides.channel + y * strides.row + x * strides.column].
  void apply(Image& image, const Plan& plan, float* output, const OutputStrides& strides,
             Workspace& workspace) const;
  /// Reads, decodes and augments one image file into a planar result (with the random numbers of sample 0, if
  /// it takes any); errors name its path.
  void load(const std::string& path, float* output) const;
  /// The strides of one planar result, and of one with channels last.
  OutputStrides planar() const;
  OutputStrides channels_last() const;

 private:
  Plan plan_random_resized(int height, int width, const Random& random, std::uint64_t first_draw) const;
  void choose_scale(Plan& plan) const;

  Augmentation augmentation_;
  ImageSize output_;
  std::array<float, 3> scale_{};
  std::array<float, 3> shift_{};
};

}  // namespace purine::data
