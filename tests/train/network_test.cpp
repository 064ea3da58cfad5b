#include "purine/train/network.h"

#include <gtest/gtest.h>

#include "purine/data/memory_dataset.h"
#include "purine/ops/schedule.h"
#include "purine/train/job_file.h"
#include "tests/support/error_text.h"

namespace purine::train {
namespace {

using test::error_text;

/// Grey images of 28 x 28 with three classes.
data::DatasetPtr small_set() {
  data::internal::MemoryImages images;
  images.size = {1, 28, 28};
  images.pixels.resize(6 * 28 * 28);
  images.labels = {0, 1, 2, 0, 1, 2};
  images.class_names = {"circle", "square", "star"};
  images.files = {"shapes"};
  images.file_ends = {6};
  return data::internal::make_memory_dataset(std::move(images));
}

Job small_job() {
  Job job;
  job.model.name = "lenet";
  job.data.folder = "shapes";
  job.data.batch = 4;
  return job;
}

TEST(NetworkTest, TheTaskFollowsFromTheSet) {
  const Task task = find_task(small_job(), *small_set());
  EXPECT_EQ(task.image.channels, 1);
  EXPECT_EQ(task.image.height, 28);
  EXPECT_EQ(task.classes, 3);
  EXPECT_EQ(task.class_name(2), "star");
  EXPECT_EQ(task.class_name(7), "7");
}

TEST(NetworkTest, TheJobCanNameMoreClassesButNotFewer) {
  Job job = small_job();
  job.model.classes = 5;
  job.data.class_names = {"a", "b", "c", "d"};
  const Task task = find_task(job, *small_set());
  EXPECT_EQ(task.classes, 5);
  EXPECT_EQ(task.class_name(3), "d");
  job.model.classes = 2;
  EXPECT_EQ(error_text([&] { find_task(job, *small_set()); }),
            "[job] shapes: model.classes is 2, and the data set has 3 classes");
  job.model.classes = 0;
  job.data.class_names = {"a"};
  EXPECT_EQ(error_text([&] { find_task(job, *small_set()); }),
            "[job] shapes: data.class_names has 1 names, and the data set 3 classes");
}

TEST(NetworkTest, EvaluationTakesTheMiddleOfWhatTrainingTakesAtRandom) {
  Job job = small_job();
  job.data.crop = "random";
  job.data.padding = 4;
  job.data.flip = 0.5;
  EXPECT_EQ(training_augmentation(job).text(), "crop=random padding=4 flip=0.5");
  EXPECT_EQ(evaluation_augmentation(job).text(), "crop=center");
  job.data.crop = "random_resized";
  job.data.padding = 0;
  job.data.crop_size = 224;
  EXPECT_EQ(evaluation_augmentation(job).resize, 256);
  job.data.evaluation_resize = 240;
  EXPECT_EQ(evaluation_augmentation(job).resize, 240);
  EXPECT_EQ(training_augmentation(job).resize, 0);
}

TEST(NetworkTest, PredictionMakesEveryImageFit) {
  Job job = small_job();
  const Task task = find_task(job, *small_set());
  const data::Augmenter augmenter(prediction_augmentation(job, task), std::nullopt);
  EXPECT_EQ(augmenter.output().channels, 1);
  EXPECT_EQ(augmenter.output().height, 28);
  EXPECT_EQ(augmenter.output().width, 28);
  EXPECT_EQ(prediction_augmentation(job, task).resize, 28);
}

TEST(NetworkTest, StepsFollowFromEpochs) {
  Job job = small_job();
  EXPECT_EQ(steps_per_epoch(job, 6), 2);
  EXPECT_EQ(steps_per_epoch(job, 8), 2);
  EXPECT_EQ(steps_per_epoch(job, 9), 3);
  job.train.epochs = 5;
  EXPECT_EQ(total_steps(job, 3), 15);
  job.train.steps = 7;
  EXPECT_EQ(total_steps(job, 3), 7);
}

TEST(NetworkTest, ScheduleCountsEpochsInSteps) {
  Job job = small_job();
  job.optimizer.schedule = "cosine";
  job.optimizer.warmup_epochs = 0.5;
  job.train.epochs = 4;
  Graph graph;
  const data::Batch batch = training_source(graph, job, small_set());
  build_training(batch, job, 3, 10);
  const ops::LearningRate* schedule = nullptr;
  for (std::uint32_t i = 0; i < graph.operator_count() && schedule == nullptr; ++i) {
    schedule = dynamic_cast<const ops::LearningRate*>(&graph.op(i).contract());
  }
  ASSERT_NE(schedule, nullptr);
  EXPECT_EQ(schedule->options().warm_up, 5);
  EXPECT_EQ(schedule->options().length, 35);
  EXPECT_EQ(schedule->options().base, job.optimizer.learning_rate);
}

TEST(NetworkTest, EveryOptimizerMakesANextValueForEachWeight) {
  for (const char* name : {"sgd", "momentum", "nesterov", "adam", "adamw"}) {
    Job job = small_job();
    job.optimizer.name = name;
    Graph graph;
    build_training(training_source(graph, job, small_set()), job, 3, 2);
    verify(graph);
    int trainable = 0;
    for (const Variable& variable : graph.variables()) {
      if (!variable.trainable()) continue;
      ++trainable;
      EXPECT_TRUE(variable.has_next()) << name << " " << variable.path();
    }
    EXPECT_EQ(trainable, 8) << name;
    EXPECT_EQ(parameter_count(graph), 431080 - 7 * 501) << name;
  }
}

TEST(NetworkTest, EvaluationHasTheVariablesOfTraining) {
  Job job = small_job();
  job.model.name = "small_convnet";
  Graph training;
  build_training(training_source(training, job, small_set()), job, 3, 2);
  Graph evaluation;
  const EvaluationTensors tensors = build_evaluation(evaluation_source(evaluation, job, small_set()), job, 3);
  EXPECT_FALSE(tensors.top5.valid()) << "3 classes have no first 5";
  verify(evaluation);
  for (const Variable& variable : evaluation.variables()) {
    const Variable same = training.find_variable(variable.path());
    ASSERT_TRUE(same.valid()) << variable.path();
    EXPECT_EQ(same.info(), variable.info()) << variable.path();
    EXPECT_FALSE(variable.has_next()) << variable.path();
  }
}

TEST(NetworkTest, AnEvaluationBatchIsNotLargerThanTheSet) {
  Job job = small_job();
  job.data.evaluation_batch = 100;
  Graph graph;
  EXPECT_EQ(evaluation_source(graph, job, small_set()).image.shape()[0], 6);
}

}  // namespace
}  // namespace purine::train
