#include "purine/train/predictor.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>

#include "purine/train/checkpoints.h"
#include "purine/train/state.h"

namespace purine::train {

Predictor::Predictor(Runtime& runtime, const Job& job, const io::Checkpoint& checkpoint,
                     const std::filesystem::path& path, Location device)
    : task_(task_of(checkpoint.manifest, path)),
      augmenter_(prediction_augmentation(job, task_), std::nullopt) {
  check_network(checkpoint.manifest, path, job);
  image_ =
      graph_.input("image", {{1, task_.image.channels, task_.image.height, task_.image.width}, DType::f32});
  probabilities_ = build_prediction(image_, job, task_.classes, device);
  session_ = std::make_unique<Session>(runtime, graph_);
  session_->feed(image_, [this](std::int64_t iteration, std::span<std::byte> value) {
    fill(static_cast<std::size_t>(iteration), value);
  });
  try {
    set_values(runtime, parallel::whole_variables(graph_), session_->variables(), checkpoint.tensors, true);
  } catch (const Error& error) {
    throw error.at(path.string());
  }
}

void Predictor::fill(std::size_t index, std::span<std::byte> value) {
  const std::string& path = images_[index];
  try {
    augmenter_.load(path, reinterpret_cast<float*>(value.data()));
    return;
  } catch (const Error& error) {
    failures_[index] = error;
  } catch (const std::bad_alloc&) {
    failures_[index] = Error("image", "there is not enough memory for it").at(path);
  }
  std::fill(value.begin(), value.end(), std::byte{0});
}

std::vector<Prediction> Predictor::likeliest(std::span<const float> probabilities, int count) const {
  std::vector<std::int64_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  const auto shown = std::min(static_cast<std::ptrdiff_t>(count), static_cast<std::ptrdiff_t>(order.size()));
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
  return predictions;
}

std::int64_t Predictor::predict(std::span<const std::string> images, int count, const Tell& tell,
                                const Complain& complain) {
  if (images.empty()) return 0;
  images_ = images;
  failures_.assign(images.size(), std::nullopt);
  std::int64_t complaints = 0;
  session_->set_iteration(0);
  for (const Step& step : session_->run({.steps = static_cast<std::int64_t>(images.size())})) {
    const auto index = static_cast<std::size_t>(step.index);
    const std::span<const float> probabilities = step.values(probabilities_);
    std::optional<Error> failure = failures_[index];
    const auto is_finite = [](float value) { return std::isfinite(value); };
    if (!failure && !std::all_of(probabilities.begin(), probabilities.end(), is_finite)) {
      failure = Error("prediction", "the network's answer is not finite",
                      "the checkpoint's weights have diverged: take an earlier one with --checkpoint")
                    .at(images[index]);
    }
    if (failure) {
      ++complaints;
      complain(*failure);
    } else {
      tell(images[index], likeliest(probabilities, count));
    }
  }
  return complaints;
}

}  // namespace purine::train
