#include "purine/data/augment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "purine/core/error.h"
#include "purine/data/file.h"

namespace purine::data {
namespace {

// Random numbers of one sample: a crop uses the first few, up to 40, the flip the last.
constexpr std::uint64_t draws_per_sample = 64;
constexpr std::uint64_t flip_draw = 63;

[[noreturn]] void fail(std::string_view message, std::string_view hint = {}) {
  throw Error("augmentation", message, hint);
}

ImageSize resized(ImageSize size, std::int64_t shorter) {
  if (shorter == 0) return size;
  constexpr std::int64_t largest = 1 << 30;
  if (shorter * std::max(size.height, size.width) / std::min(size.height, size.width) > largest) {
    fail(fmt::format("an image of {} x {} pixels is too long to be resized to {}", size.width, size.height,
                     shorter));
  }
  const bool tall = size.height > size.width;
  const std::int64_t longer = std::max<std::int64_t>(
      1, shorter * std::max(size.height, size.width) / std::min(size.height, size.width));
  return {size.channels, tall ? longer : shorter, tall ? shorter : longer};
}

// Where a crop begins that leaves `rest` pixels in all: the middle, the even one of two.
int central(std::int64_t rest) {
  const std::int64_t half = rest / 2;
  return static_cast<int>(rest % 2 == 0 || half % 2 == 0 ? half : half + 1);
}

// The first wanted pixel of an extent that is cropped to `wanted`; `offset` chooses among `rest` + 1 places.
template <typename Offset>
int crop_begin(std::int64_t extent, std::int64_t wanted, std::int64_t padding, Offset&& offset) {
  const std::int64_t rest = extent + 2 * padding - wanted;
  if (rest < 0) return -static_cast<int>((wanted - extent) / 2);
  return static_cast<int>(offset(rest) - padding);
}

std::vector<double> per_channel(const std::vector<double>& values, std::int64_t channels, double otherwise,
                                std::string_view name) {
  const auto count = static_cast<std::int64_t>(values.size());
  if (count == 0) return std::vector<double>(static_cast<std::size_t>(channels), otherwise);
  if (count == 1) return std::vector<double>(static_cast<std::size_t>(channels), values[0]);
  if (count != channels) {
    fail(fmt::format(
        "{} has {} values, expected {}", name, count,
        channels == 1 ? "1: there is one channel" : fmt::format("1 or {}: one for each channel", channels)));
  }
  return values;
}

void check_bounds(const std::array<double, 2>& bounds, double highest, std::string_view name) {
  if (!(bounds[0] > 0 && bounds[0] <= bounds[1] && bounds[1] <= highest)) {
    fail(fmt::format("{} is [{}, {}], expected 0 < first <= second{}", name, bounds[0], bounds[1],
                     highest < 2 ? " <= 1" : ""));
  }
}

void check(const Augmentation& augmentation) {
  if (augmentation.channels != 0 && augmentation.channels != 1 && augmentation.channels != 3) {
    fail(fmt::format("channels is {}, expected 1 or 3 (or 0: the set's)", augmentation.channels));
  }
  constexpr std::int64_t largest = 1 << 16;
  for (const auto& [name, value] : {std::pair{"resize", augmentation.resize},
                                    {"crop height", augmentation.crop_size.height},
                                    {"crop width", augmentation.crop_size.width},
                                    {"padding", augmentation.padding}}) {
    if (value < 0 || value > largest) fail(fmt::format("{} is {}, expected 0 to {}", name, value, largest));
  }
  if (augmentation.crop == Crop::none && augmentation.crop_size.height != 0) {
    fail("has a crop size but no crop", "crop is center, random or random_resized");
  }
  if (augmentation.padding != 0 && augmentation.crop != Crop::random) {
    fail(fmt::format("padding goes with crop random, not with {}", name_of(augmentation.crop)));
  }
  if (augmentation.crop == Crop::random_resized) {
    if (augmentation.resize != 0) fail("crop random_resized resizes by itself: resize must be left out");
    check_bounds(augmentation.area, 1.0, "area");
    check_bounds(augmentation.ratio, 1e6, "ratio");
  }
  if (!(augmentation.flip >= 0 && augmentation.flip <= 1)) {
    fail(fmt::format("flip is {}, expected a probability from 0 to 1", augmentation.flip));
  }
}

}  // namespace

std::string_view name_of(Crop crop) {
  switch (crop) {
    case Crop::center:
      return "center";
    case Crop::random:
      return "random";
    case Crop::random_resized:
      return "random_resized";
    case Crop::none:
      break;
  }
  return "none";
}

std::string Augmentation::text() const {
  std::vector<std::string> parts;
  if (channels != 0) parts.push_back(fmt::format("channels={}", channels));
  if (resize != 0) parts.push_back(fmt::format("resize={}", resize));
  if (crop != Crop::none) {
    std::string part = fmt::format("crop={}", name_of(crop));
    if (crop_size.height != 0) part += fmt::format("[{}, {}]", crop_size.height, crop_size.width);
    parts.push_back(std::move(part));
  }
  if (padding != 0) parts.push_back(fmt::format("padding={}", padding));
  if (crop == Crop::random_resized) {
    parts.push_back(fmt::format("area=[{}] ratio=[{}]", fmt::join(area, ", "), fmt::join(ratio, ", ")));
  }
  if (flip != 0) parts.push_back(fmt::format("flip={}", flip));
  if (!mean.empty()) parts.push_back(fmt::format("mean=[{}]", fmt::join(mean, ", ")));
  if (!deviation.empty()) parts.push_back(fmt::format("deviation=[{}]", fmt::join(deviation, ", ")));
  if (!scaled_decoding) parts.emplace_back("scaled_decoding=false");
  return fmt::format("{}", fmt::join(parts, " "));
}

Augmentation photograph_training(std::int64_t side) {
  return {.crop = Crop::random_resized,
          .crop_size = side,
          .flip = 0.5,
          .mean = {0.485, 0.456, 0.406},
          .deviation = {0.229, 0.224, 0.225}};
}

Augmentation photograph_evaluation(std::int64_t side) {
  return {.resize = side * 256 / 224,
          .crop = Crop::center,
          .crop_size = side,
          .mean = {0.485, 0.456, 0.406},
          .deviation = {0.229, 0.224, 0.225}};
}

Augmenter::Augmenter(Augmentation augmentation, std::optional<ImageSize> set)
    : augmentation_(std::move(augmentation)) {
  check(augmentation_);
  std::optional<ImageSize> size = set;
  if (size && augmentation_.crop != Crop::random_resized) size = resized(*size, augmentation_.resize);
  if (augmentation_.crop_size.height == 0) {
    if (!size) {
      fail("the set's images have different sizes: the network needs one",
           "say which with a crop and its size, after a resize perhaps");
    }
    augmentation_.crop_size = {size->height, size->width};
  }
  output_.channels = augmentation_.channels != 0 ? augmentation_.channels : set ? set->channels : 3;
  output_.height = augmentation_.crop_size.height;
  output_.width = augmentation_.crop_size.width;
  if (output_.width == 0) fail("crop width is 0, expected at least 1");

  const std::vector<double> mean = per_channel(augmentation_.mean, output_.channels, 0.0, "mean");
  const std::vector<double> deviation =
      per_channel(augmentation_.deviation, output_.channels, 1.0, "deviation");
  for (std::size_t c = 0; c < mean.size(); ++c) {
    if (!(deviation[c] > 0 && std::isfinite(deviation[c]) && std::isfinite(mean[c]))) {
      fail(fmt::format("deviation is {} and mean {}, expected a positive and a finite number", deviation[c],
                       mean[c]));
    }
    scale_[c] = static_cast<float>(1.0 / (255.0 * deviation[c]));
    shift_[c] = static_cast<float>(-mean[c] / deviation[c]);
  }
}

Augmenter::Plan Augmenter::plan(int height, int width, std::uint64_t seed, std::int64_t epoch,
                                std::int64_t sample) const {
  const std::uint64_t stream = hash_text("data/augment");
  const Random random(seed, stream, static_cast<std::uint64_t>(epoch));
  const std::uint64_t first_draw = static_cast<std::uint64_t>(sample) * draws_per_sample;

  Plan plan;
  if (augmentation_.crop == Crop::random_resized) {
    plan = plan_random_resized(height, width, random, first_draw);
  } else {
    const ImageSize whole = resized({output_.channels, height, width}, augmentation_.resize);
    const bool is_random = augmentation_.crop == Crop::random;
    const auto offset = [&](std::uint64_t draw) {
      return [&random, is_random, draw](std::int64_t rest) -> std::int64_t {
        if (!is_random) return central(rest);
        return static_cast<std::int64_t>(random.below(draw, static_cast<std::uint64_t>(rest) + 1));
      };
    };
    plan.rows = {0.0, static_cast<double>(height), static_cast<int>(whole.height),
                 crop_begin(whole.height, output_.height, augmentation_.padding, offset(first_draw)),
                 static_cast<int>(output_.height)};
    plan.columns = {0.0, static_cast<double>(width), static_cast<int>(whole.width),
                    crop_begin(whole.width, output_.width, augmentation_.padding, offset(first_draw + 1)),
                    static_cast<int>(output_.width)};
  }
  plan.height = height;
  plan.width = width;
  plan.flipped = augmentation_.flip > 0 &&
                 static_cast<double>(random.uniform(first_draw + flip_draw)) < augmentation_.flip;
  if (augmentation_.scaled_decoding) choose_scale(plan);
  return plan;
}

Augmenter::Plan Augmenter::plan_random_resized(int height, int width, const Random& random,
                                               std::uint64_t first_draw) const {
  const auto uniform = [&](std::uint64_t draw, double low, double high) {
    return low + (high - low) * static_cast<double>(random.uniform(first_draw + draw));
  };
  const auto below = [&](std::uint64_t draw, int bound) {
    return static_cast<int>(random.below(first_draw + draw, static_cast<std::uint64_t>(bound)));
  };
  const auto part = [&](int top, int left, int rows, int columns) {
    Plan plan;
    plan.rows = {static_cast<double>(top), static_cast<double>(rows), static_cast<int>(output_.height), 0,
                 static_cast<int>(output_.height)};
    plan.columns = {static_cast<double>(left), static_cast<double>(columns), static_cast<int>(output_.width),
                    0, static_cast<int>(output_.width)};
    return plan;
  };
  constexpr std::uint64_t tries = 10;
  const double whole_area = static_cast<double>(height) * width;
  const auto& [lowest_ratio, highest_ratio] = augmentation_.ratio;
  for (std::uint64_t i = 0; i < tries; ++i) {
    const double area = whole_area * uniform(4 * i, augmentation_.area[0], augmentation_.area[1]);
    const double ratio = std::exp(uniform(4 * i + 1, std::log(lowest_ratio), std::log(highest_ratio)));
    const double columns = std::nearbyint(std::sqrt(area * ratio));
    const double rows = std::nearbyint(std::sqrt(area / ratio));
    if (columns < 1 || columns > width || rows < 1 || rows > height) continue;
    const int top = below(4 * i + 2, height - static_cast<int>(rows) + 1);
    const int left = below(4 * i + 3, width - static_cast<int>(columns) + 1);
    return part(top, left, static_cast<int>(rows), static_cast<int>(columns));
  }
  const double ratio = static_cast<double>(width) / height;
  int rows = height;
  int columns = width;
  if (ratio < lowest_ratio)
    rows = std::clamp(static_cast<int>(std::nearbyint(width / lowest_ratio)), 1, height);
  if (ratio > highest_ratio)
    columns = std::clamp(static_cast<int>(std::nearbyint(height * highest_ratio)), 1, width);
  return part((height - rows) / 2, (width - columns) / 2, rows, columns);
}

void Augmenter::choose_scale(Plan& plan) const {
  const auto suffices = [](const ResampleAxis& axis, int eighths) {
    return axis.length * eighths / 8 >= 2.0 * axis.resized;
  };
  for (const int eighths : {1, 2, 4}) {
    if (suffices(plan.rows, eighths) && suffices(plan.columns, eighths)) {
      plan.eighths = eighths;
      return;
    }
  }
}

void Augmenter::apply(Image& image, const Plan& plan, float* output, const OutputStrides& strides,
                      Workspace& workspace) const {
  ResampleAxis rows = plan.rows;
  ResampleAxis columns = plan.columns;
  if (image.height != plan.height || image.width != plan.width) {
    const double ratio = plan.eighths / 8.0;
    PURINE_CHECK_EQUAL(image.height, static_cast<int>(std::ceil(plan.height * ratio)));
    PURINE_CHECK_EQUAL(image.width, static_cast<int>(std::ceil(plan.width * ratio)));
    const auto shrink = [ratio](ResampleAxis& axis, double corner) {
      axis.begin = axis.begin * ratio + corner;
      axis.length *= ratio;
    };
    shrink(rows, image.top);
    shrink(columns, image.left);
  }
  if (image.channels == 3 && output_.channels == 1) convert_channels(image, 1);
  resample(image, rows, columns, plan.flipped, {static_cast<int>(output_.channels), scale_, shift_}, output,
           strides, workspace.resample);
}

void Augmenter::load(const std::string& path, float* output) const {
  try {
    std::vector<std::byte> bytes;
    read_file(path, bytes);
    const std::unique_ptr<Decoder> decoder = open_image(bytes, {.keep_grey = true});
    const Plan plan = this->plan(decoder->info().height, decoder->info().width, 0, 0, 0);
    Image image;
    decoder->decode(image, plan.eighths);
    Workspace workspace;
    apply(image, plan, output, planar(), workspace);
  } catch (const Error& error) {
    throw error.at(path);
  }
}

OutputStrides Augmenter::planar() const {
  return {output_.height * output_.width, output_.width, 1};
}

OutputStrides Augmenter::channels_last() const {
  return {1, output_.width * output_.channels, output_.channels};
}

}  // namespace purine::data
