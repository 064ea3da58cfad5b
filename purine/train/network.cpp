#include "purine/train/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "purine/core/amount_text.h"
#include "purine/core/error.h"
#include "purine/core/shell_word.h"
#include "purine/models/models.h"
#include "purine/ops/copy.h"
#include "purine/ops/loss.h"
#include "purine/ops/softmax.h"
#include "purine/optim/optimizers.h"
#include "purine/train/job_keys.h"
#include "purine/train/job_mistake.h"

namespace purine::train {
namespace {

data::Augmentation common_augmentation(const Job& job) {
  data::Augmentation augmentation;
  augmentation.channels = job.data.channels;
  augmentation.mean = job.data.mean;
  augmentation.deviation = job.data.deviation;
  return augmentation;
}

std::int64_t epochs_to_steps(double epochs, std::int64_t steps_per_epoch) {
  return std::llround(epochs * static_cast<double>(steps_per_epoch));
}

optim::Schedule make_schedule(const Job& job, std::int64_t epoch_steps) {
  const Job::Optimizer& optimizer = job.optimizer;
  optim::Schedule schedule;
  using Kind = optim::Schedule::Kind;
  schedule.kind = optimizer.schedule == "step"         ? Kind::step
                  : optimizer.schedule == "polynomial" ? Kind::polynomial
                  : optimizer.schedule == "cosine"     ? Kind::cosine
                                                       : Kind::constant;
  schedule.warm_up = epochs_to_steps(optimizer.warmup_epochs, epoch_steps);
  schedule.step = std::max<std::int64_t>(1, epochs_to_steps(optimizer.step_epochs, epoch_steps));
  schedule.factor = optimizer.step_factor;
  schedule.length = std::max<std::int64_t>(1, total_steps(job, epoch_steps) - schedule.warm_up);
  schedule.power = optimizer.power;
  schedule.last = optimizer.final_learning_rate;
  return schedule;
}

template <typename Options>
Options common_options(const Job& job, std::int64_t epoch_steps) {
  Options options;
  options.learning_rate = job.optimizer.learning_rate;
  options.weight_decay = job.optimizer.weight_decay;
  options.schedule = make_schedule(job, epoch_steps);
  options.clip_value = job.optimizer.clip_value;
  options.clip_norm = job.optimizer.clip_norm;
  return options;
}

optim::Optimizer add_optimizer(Tensor loss, const Job& job, std::int64_t epoch_steps) {
  const Job::Optimizer& optimizer = job.optimizer;
  if (optimizer.name == "sgd") {
    return optim::sgd(loss, common_options<optim::SgdOptions>(job, epoch_steps));
  }
  if (optimizer.name == "momentum" || optimizer.name == "nesterov") {
    auto options = common_options<optim::MomentumOptions>(job, epoch_steps);
    options.momentum = optimizer.momentum;
    options.nesterov = optimizer.name == "nesterov";
    return optim::momentum(loss, options);
  }
  const auto with_moments = [&](auto options) {
    options.beta1 = optimizer.beta1;
    options.beta2 = optimizer.beta2;
    options.epsilon = optimizer.epsilon;
    return options;
  };
  if (optimizer.name == "adam") {
    return optim::adam(loss, with_moments(common_options<optim::AdamOptions>(job, epoch_steps)));
  }
  PURINE_CHECK_EQUAL(optimizer.name, std::string("adamw"));
  return optim::adamw(loss, with_moments(common_options<optim::AdamwOptions>(job, epoch_steps)));
}

data::Batch brought_to(const data::Batch& batch, Location device) {
  return {ops::copy(batch.image, device, "image"), ops::copy(batch.label, device, "label")};
}

data::SourceOptions source_options(const Job& job, std::shared_ptr<data::SkippedImages> skipped) {
  data::SourceOptions options;
  options.on_bad_image = job.data.on_bad_image == "skip" ? data::OnBadImage::skip : data::OnBadImage::error;
  options.skipped = std::move(skipped);
  return options;
}

}  // namespace

std::string Task::class_name(std::int64_t label) const {
  const auto index = static_cast<std::size_t>(label);
  return index < class_names.size() ? class_names[index] : std::to_string(label);
}

bool Task::operator==(const Task& other) const {
  return image.channels == other.image.channels && image.height == other.image.height &&
         image.width == other.image.width && classes == other.classes && class_names == other.class_names;
}

namespace {

data::DatasetPtr open_format(const Job& job, data::Subset subset) {
  const std::string& format = job.data.format;
  const std::string& folder = job.data.folder;
  if (format == "idx") return data::open_idx(folder, subset);
  if (format == "cifar10") return data::open_cifar10(folder, subset);
  if (format == "cifar100") {
    const bool coarse = job.data.labels == "coarse";
    return data::open_cifar100(folder, subset, coarse ? data::CifarLabels::coarse : data::CifarLabels::fine);
  }
  PURINE_CHECK_EQUAL(format, std::string("folder"));
  return data::open_folder(folder, subset);
}

}  // namespace

data::DatasetPtr open_dataset(const Job& job, data::Subset subset) {
  namespace fs = std::filesystem;
  const std::string shown = job_value_text(JobValue(job.data.folder));
  std::error_code error;
  if (!fs::exists(job.data.folder, error)) {
    throw JobMistake("data.folder", fmt::format("is {}, which does not exist", shown));
  }
  if (!fs::is_directory(job.data.folder, error)) {
    throw JobMistake("data.folder", fmt::format("is {}, which is not a folder", shown));
  }
  try {
    return open_format(job, subset);
  } catch (const Error& cause) {
    if (fs::is_regular_file(cause.path(), error)) throw;
    const std::string where = cause.path() == job.data.folder ? "" : cause.path() + ": ";
    throw JobMistake("data.folder",
                     fmt::format("is {}, which cannot be used with format = \"{}\": {}{}", shown,
                                 job.data.format, where, cause.message()),
                     cause.hint().empty() ? fmt::format("`purine data check {}` tells what is there",
                                                        shell_word(job.data.folder))
                                          : cause.hint());
  }
}

data::Augmentation training_augmentation(const Job& job) {
  data::Augmentation augmentation = common_augmentation(job);
  augmentation.resize = job.data.resize;
  augmentation.crop = job.data.crop == "center"           ? data::Crop::center
                      : job.data.crop == "random"         ? data::Crop::random
                      : job.data.crop == "random_resized" ? data::Crop::random_resized
                                                          : data::Crop::none;
  augmentation.crop_size = job.data.crop_size;
  augmentation.padding = job.data.padding;
  augmentation.area = {job.data.area.front(), job.data.area.back()};
  augmentation.ratio = {job.data.ratio.front(), job.data.ratio.back()};
  augmentation.flip = job.data.flip;
  return augmentation;
}

data::Augmentation evaluation_augmentation(const Job& job) {
  data::Augmentation augmentation = common_augmentation(job);
  augmentation.resize = job.data.evaluation_resize;
  if (augmentation.resize == 0) {
    const bool resizes_crop = job.data.crop == "random_resized";
    augmentation.resize = resizes_crop ? job.data.crop_size * 8 / 7 : job.data.resize;
  }
  augmentation.crop = job.data.crop == "none" ? data::Crop::none : data::Crop::center;
  augmentation.crop_size = job.data.crop_size;
  return augmentation;
}

data::Augmentation prediction_augmentation(const Job& job, const Task& task) {
  data::Augmentation augmentation = evaluation_augmentation(job);
  augmentation.channels = task.image.channels;
  if (augmentation.resize == 0) augmentation.resize = std::max(task.image.height, task.image.width);
  augmentation.crop = data::Crop::center;
  augmentation.crop_size = {task.image.height, task.image.width};
  return augmentation;
}

namespace {

// The size of the images that an augmentation makes.
data::ImageSize image_size(const Job& job, const data::Augmentation& augmentation,
                           const data::Dataset& dataset) {
  const std::optional<data::ImageSize> size = dataset.image_size();
  const std::int64_t channels = job.data.channels > 0 ? job.data.channels : size ? size->channels : 3;
  for (const auto& [key, values] :
       {std::pair{"data.mean", &job.data.mean}, {"data.deviation", &job.data.deviation}}) {
    const auto count = static_cast<std::int64_t>(values->size());
    if (count <= 1 || count == channels) continue;
    throw JobMistake(
        key, fmt::format("has {} values, and the images have {}", count, counted_text(channels, "channel")),
        channels == 1 ? "give one value, or set channels = 3" : "give one value, or one for each");
  }
  try {
    return data::Augmenter(augmentation, size).output();
  } catch (const Error& cause) {
    throw JobMistake("data.resize", fmt::format("is {}: {}", augmentation.resize, cause.message()),
                     cause.hint());
  }
}

// The network for a batch of images.
models::Network build_network(const Job& job, Tensor image, std::int64_t classes, nn::Mode mode) {
  try {
    return models::build(job.model.name, image, classes, mode);
  } catch (const Error& cause) {
    const Shape& shape = image.shape();
    throw JobMistake(
        "model.name",
        fmt::format("is \"{}\", which cannot take images of {}: {}{}{}", job.model.name,
                    size_text({shape[1], shape[2], shape[3]}), cause.path(), cause.path().empty() ? "" : ": ",
                    cause.message()),
        "take another network, or images of another size (resize, crop and crop_size in [data])");
  }
}

}  // namespace

Task find_task(const Job& job, const data::Dataset& training_set) {
  Task task;
  task.image = image_size(job, training_augmentation(job), training_set);
  task.class_names = training_set.class_names();
  const auto set_classes = static_cast<std::int64_t>(task.class_names.size());
  if (!job.data.class_names.empty()) {
    if (static_cast<std::int64_t>(job.data.class_names.size()) < set_classes) {
      throw JobMistake("data.class_names",
                       fmt::format("has {}, and the data set {} classes",
                                   counted_text(job.data.class_names.size(), "name"), set_classes));
    }
    task.class_names = job.data.class_names;
  }
  task.classes = job.model.classes > 0 ? job.model.classes : set_classes;
  if (task.classes < set_classes) {
    throw JobMistake("model.classes",
                     fmt::format("is {}, and the data set has {} classes", task.classes, set_classes),
                     "leave it out, or name at least as many");
  }
  return task;
}

data::ImageSize test_image_size(const Job& job, const data::Dataset& test_set) {
  return image_size(job, evaluation_augmentation(job), test_set);
}

std::string size_text(const data::ImageSize& image) {
  return fmt::format("{} x {} x {}", image.channels, image.height, image.width);
}

void check_test_images(const Job& job, const Task& task, const data::Dataset& test_set) {
  const data::ImageSize image = test_image_size(job, test_set);
  if (image == task.image) return;
  const std::string difference = fmt::format("makes test images of {}, and the network is for {}",
                                             size_text(image), size_text(task.image));
  if (job.data.evaluation_resize > 0) {
    throw JobMistake("data.evaluation_resize",
                     fmt::format("is {}, which {}", job.data.evaluation_resize, difference),
                     "set a crop, whose size both have then");
  }
  if (job.data.crop_size > 0) {
    throw JobMistake("data.crop_size", fmt::format("is {}, which {}", job.data.crop_size, difference),
                     "take the size that the network was trained with");
  }
  throw JobMistake("data.folder",
                   fmt::format("is {}, which {}", job_value_text(JobValue(job.data.folder)), difference),
                   "set crop and crop_size in [data]");
}

std::int64_t steps_per_epoch(const Job& job, std::int64_t images) {
  return (images + job.data.batch - 1) / job.data.batch;
}

std::int64_t total_steps(const Job& job, std::int64_t steps_per_epoch) {
  return job.train.steps > 0 ? job.train.steps : job.train.epochs * steps_per_epoch;
}

TrainingTensors build_training(const data::Batch& batch, const Job& job, std::int64_t classes,
                               std::int64_t steps_per_epoch, Location device) {
  Graph& graph = batch.image.graph();
  const auto placement = graph.at(device);
  const auto [image, label] = brought_to(batch, device);
  const models::Network network = build_network(job, image, classes, nn::Mode::training);
  TrainingTensors tensors;
  tensors.loss = models::classification_loss(network, label);
  tensors.accuracy = ops::accuracy(network.logits, label);
  tensors.learning_rate = add_optimizer(tensors.loss, job, steps_per_epoch).learning_rate;
  for (const Tensor tensor : {tensors.loss, tensors.accuracy, tensors.learning_rate}) graph.watch(tensor);
  return tensors;
}

EvaluationTensors build_evaluation(const data::Batch& batch, const Job& job, std::int64_t classes,
                                   Location device) {
  Graph& graph = batch.image.graph();
  const auto placement = graph.at(device);
  const auto [image, label] = brought_to(batch, device);
  const Tensor logits = build_network(job, image, classes, nn::Mode::inference).logits;
  EvaluationTensors tensors;
  tensors.loss = ops::softmax_cross_entropy(logits, label);
  tensors.accuracy = ops::accuracy(logits, label);
  graph.watch(tensors.loss);
  graph.watch(tensors.accuracy);
  if (classes > 5) {
    tensors.top5 = ops::accuracy(logits, label, 5);
    graph.watch(tensors.top5);
  }
  return tensors;
}

Tensor build_prediction(Tensor image, const Job& job, std::int64_t classes, Location device) {
  const auto placement = image.graph().at(device);
  const Tensor local_image = ops::copy(image, device, "image");
  const Tensor logits = build_network(job, local_image, classes, nn::Mode::inference).logits;
  const Tensor probabilities = ops::softmax(logits);
  image.graph().watch(probabilities);
  return probabilities;
}

data::Batch training_source(Graph& graph, const Job& job, data::DatasetPtr dataset,
                            std::shared_ptr<data::SkippedImages> skipped) {
  data::SourceOptions options = source_options(job, std::move(skipped));
  options.batch = job.data.batch;
  if (options.batch > dataset->size()) {
    throw JobMistake("data.batch", fmt::format("is {}, and the training set has only {} images",
                                               options.batch, dataset->size()));
  }
  options.shuffle = true;
  options.augmentation = training_augmentation(job);
  return data::source(graph, std::move(dataset), std::move(options), "training_data");
}

data::Batch evaluation_source(Graph& graph, const Job& job, data::DatasetPtr dataset,
                              std::shared_ptr<data::SkippedImages> skipped) {
  data::SourceOptions options = source_options(job, std::move(skipped));
  const std::int64_t batch = job.data.evaluation_batch > 0 ? job.data.evaluation_batch : job.data.batch;
  options.batch = std::min(batch, dataset->size());
  options.shuffle = false;
  options.augmentation = evaluation_augmentation(job);
  return data::source(graph, std::move(dataset), std::move(options), "test_data");
}

std::int64_t parameter_count(Graph& graph) {
  std::int64_t count = 0;
  for (const Variable& variable : graph.variables()) {
    if (variable.trainable()) count += variable.shape().elements();
  }
  return count;
}

}  // namespace purine::train
