#include "purine/train/predictor.h"

#include <algorithm>
#include <numeric>

#include "purine/core/error.h"
#include "purine/data/file.h"
#include "purine/data/image.h"
#include "purine/train/checkpoints.h"
#include "purine/train/state.h"

namespace purine::train {

Predictor::Predictor(Runtime& runtime, const Job& job, const io::Checkpoint& checkpoint,
                     const std::filesystem::path& path, Location device)
    : task_(task_of(checkpoint.manifest, path)),
      augmenter_(prediction_augmentation(job, task_), std::nullopt) {
  image_ =
      graph_.input("image", {{1, task_.image.channels, task_.image.height, task_.image.width}, DType::f32});
  probabilities_ = build_prediction(image_, job, task_.classes, device);
  session_ = std::make_unique<Session>(runtime, graph_);
  session_->feed(image_, [this](std::int64_t iteration, std::span<std::byte> value) {
    fill(images_[static_cast<std::size_t>(iteration)], value);
  });
  try {
    set_values(graph_, session_->variables(), checkpoint.tensors, true);
  } catch (const Error& error) {
    throw error.at(path.string());
  }
}

void Predictor::fill(const std::string& path, std::span<std::byte> value) const {
  try {
    std::vector<std::byte> file;
    data::read_file(path, file);
    const std::unique_ptr<data::Decoder> decoder = data::open_image(file, {.keep_grey = true});
    const data::Augmenter::Plan plan =
        augmenter_.plan(decoder->info().height, decoder->info().width, 0, 0, 0);
    data::Image image;
    decoder->decode(image, plan.eighths);
    data::Augmenter::Workspace workspace;
    augmenter_.apply(image, plan, reinterpret_cast<float*>(value.data()), augmenter_.planar(), workspace);
  } catch (const Error& error) {
    throw error.at(path);
  }
}

void Predictor::predict(
    std::span<const std::string> images, int count,
    const std::function<void(const std::string& image, const std::vector<Prediction>&)>& tell) {
  if (images.empty()) return;
  images_ = images;
  session_->set_iteration(0);
  for (const Step& step : session_->run({.steps = static_cast<std::int64_t>(images.size())})) {
    const std::span<const float> probabilities = step.values(probabilities_);
    std::vector<std::int64_t> order(probabilities.size());
    std::iota(order.begin(), order.end(), 0);
    const auto shown =
        std::min(static_cast<std::ptrdiff_t>(count), static_cast<std::ptrdiff_t>(order.size()));
    std::partial_sort(order.begin(), order.begin() + shown, order.end(), [&](std::int64_t a, std::int64_t b) {
      const float left = probabilities[static_cast<std::size_t>(a)];
      const float right = probabilities[static_cast<std::size_t>(b)];
      return left != right ? left > right : a < b;
    });
    std::vector<Prediction> predictions;
    for (std::ptrdiff_t i = 0; i < shown; ++i) {
      const std::int64_t label = order[static_cast<std::size_t>(i)];
      predictions.push_back({label, task_.class_name(label),
                             static_cast<double>(probabilities[static_cast<std::size_t>(label)])});
    }
    tell(images[static_cast<std::size_t>(step.index)], predictions);
  }
}

}  // namespace purine::train
