// From a job to the graphs that train and evaluate it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "purine/data/dataset.h"
#include "purine/data/source.h"
#include "purine/graph/graph.h"
#include "purine/train/job.h"

namespace purine::train {

/// What a network is for, apart from its weights: the images it takes and the classes it tells.
struct Task {
  data::ImageSize image;
  std::int64_t classes = 0;              ///< outputs of the network
  std::vector<std::string> class_names;  ///< of the classes that have one

  /// The name of a class, or its number where it has none.
  std::string class_name(std::int64_t label) const;
  bool operator==(const Task& other) const;
};

// What a job's data and the network's operators show to be wrong is thrown as a JobMistake, which names the
// key.

/// Opens the job's data set. A folder that isn't there, or holds no set of the format, is a mistake of the
/// job; a file in it that is damaged is an Error with the file's path.
data::DatasetPtr open_dataset(const Job& job, data::Subset subset);
/// What is done to the images of the training set.
data::Augmentation training_augmentation(const Job& job);
/// What is done to those of the test set.
data::Augmentation evaluation_augmentation(const Job& job);
/// What is done to an image of any size and mode so that a network can take it: as for the test set, and
/// where that expects images of one size, the shorter side is resized and the middle taken.
data::Augmentation prediction_augmentation(const Job& job, const Task& task);

/// The task that the job's training set sets. It is a mistake where the job names fewer classes or outputs
/// than the set has classes, or means and deviations for another number of channels than its images have.
Task find_task(const Job& job, const data::Dataset& training_set);
/// What evaluation makes of the test set's images.
data::ImageSize test_image_size(const Job& job, const data::Dataset& test_set);
/// `3 x 224 x 224`: channels, height and width.
std::string size_text(const data::ImageSize& image);
/// Throws where the images of the test set don't become what the network takes.
void check_test_images(const Job& job, const Task& task, const data::Dataset& test_set);

/// The steps of one epoch over this many images.
std::int64_t steps_per_epoch(const Job& job, std::int64_t images);
/// The steps of the whole run.
std::int64_t total_steps(const Job& job, std::int64_t steps_per_epoch);

/// What the host reads of a training graph: scalars.
struct TrainingTensors {
  Tensor loss;
  Tensor accuracy;
  Tensor learning_rate;
};
/// Builds network, loss, gradients and updates on a device, which the batch is brought to. `steps_per_epoch`
/// turns the schedule's epochs into steps. Images that the network can't take are a mistake.
TrainingTensors build_training(const data::Batch& batch, const Job& job, std::int64_t classes,
                               std::int64_t steps_per_epoch, Location device = {});

/// What the host reads of an evaluation graph: scalars; `top5` is there where there are more than 5 classes.
struct EvaluationTensors {
  Tensor loss;
  Tensor accuracy;
  Tensor top5;
};
/// Builds the network for inference on a batch: the same variables as in training.
EvaluationTensors build_evaluation(const data::Batch& batch, const Job& job, std::int64_t classes,
                                   Location device = {});

/// Builds the network for inference on a batch of images; returns the classes' probabilities, [N, classes].
Tensor build_prediction(Tensor image, const Job& job, std::int64_t classes, Location device = {});

/// Sources of the training and of the test set in a graph. A batch that is larger than the training set is a
/// mistake. `skipped` is told of broken images, if the job
/// lets them be skipped.
data::Batch training_source(Graph& graph, const Job& job, data::DatasetPtr dataset,
                            std::shared_ptr<data::SkippedImages> skipped = {});
data::Batch evaluation_source(Graph& graph, const Job& job, data::DatasetPtr dataset,
                              std::shared_ptr<data::SkippedImages> skipped = {});

/// Elements of the variables that are learnt.
std::int64_t parameter_count(Graph& graph);

}  // namespace purine::train
