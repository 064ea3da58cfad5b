#include "purine/train/network.h"

#include <gtest/gtest.h>

#include "purine/data/memory_dataset.h"
#include "purine/ops/schedule.h"
#include "purine/train/job_file.h"
#include "purine/train/job_mistake.h"
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
            "[job] model.classes is 2, and the data set has 3 classes; hint: leave it out, or name at least "
            "as many");
  job.model.classes = 0;
  job.data.class_names = {"a"};
  EXPECT_EQ(error_text([&] { find_task(job, *small_set()); }),
            "[job] data.class_names has 1 name, and the data set 3 classes");
}

TEST(NetworkTest, MistakesNameTheirKey) {
  const auto key_of = [](auto&& function) -> std::string {
    try {
      function();
    } catch (const JobMistake& mistake) {
      return mistake.key();
    }
    return "none";
  };
  Job job = small_job();
  Graph graph;
  job.data.batch = 7;
  EXPECT_EQ(key_of([&] { training_source(graph, job, small_set()); }), "data.batch");
  job = small_job();
  job.data.mean = {1, 2, 3};
  EXPECT_EQ(key_of([&] { find_task(job, *small_set()); }), "data.mean");
  job.data.channels = 3;
  EXPECT_EQ(key_of([&] { find_task(job, *small_set()); }), "none");
  job = small_job();
  job.model.name = "alexnet";
  EXPECT_EQ(key_of([&] { build_training(training_source(graph, job, small_set()), job, 3, 2); }),
            "model.name");
  job = small_job();
  job.data.folder = "tests/train/nowhere";
  EXPECT_EQ(key_of([&] { open_dataset(job, data::Subset::train); }), "data.folder");
}

TEST(NetworkTest, TestImagesMustFitTheNetwork) {
  Job job = small_job();
  const Task task = find_task(job, *small_set());
  EXPECT_NO_THROW(check_test_images(job, task, *small_set()));
  job.data.evaluation_resize = 32;
  EXPECT_EQ(error_text([&] { check_test_images(job, task, *small_set()); }),
            "[job] data.evaluation_resize is 32, which makes test images of 1 x 32 x 32, and the network is "
            "for 1 x "
            "28 x 28; hint: set a crop, whose size both have then");
  job.data.evaluation_resize = 0;
  job.data.crop = "center";
  job.data.crop_size = 24;
  EXPECT_EQ(error_text([&] { check_test_images(job, task, *small_set()); }),
            "[job] data.crop_size is 24, which makes test images of 1 x 24 x 24, and the network is for 1 x "
            "28 x 28; "
            "hint: take the size that the network was trained with");
  job = small_job();
  Task other = task;
  other.image.width = 27;
  EXPECT_EQ(error_text([&] { check_test_images(job, other, *small_set()); }),
            "[job] data.folder is \"shapes\", which makes test images of 1 x 28 x 28, and the network is for "
            "1 x 28 x "
            "27; hint: set crop and crop_size in [data]");
}

TEST(NetworkTest, MistakesAreLocated) {
  LoadedJob loaded{.job = small_job(), .name = "job.toml", .origins = {{"data.batch", "job.toml:7"}}};
  EXPECT_EQ(error_text([&] {
              locating_mistakes(loaded, [] { throw JobMistake("data.batch", "is wrong", "mend it"); });
            }),
            "[job] job.toml:7: data.batch is wrong; hint: mend it");
  EXPECT_EQ(error_text([&] { locating_mistakes(loaded, [] { throw JobMistake("data.mean", "is wrong"); }); }),
            "[job] job.toml: data.mean is wrong")
      << "a key that has its default";
  EXPECT_EQ(error_text([&] {
              locating_mistakes(loaded, [] { throw Error("memory", "there is none", "get some"); });
            }),
            "[job] job.toml:7: data.batch is 4, and there is none; hint: get some");
  EXPECT_EQ(error_text([&] { locating_mistakes(loaded, [] { throw Error("disk", "is full"); }); }),
            "[disk] is full");
  EXPECT_EQ(locating_mistakes(loaded, [] { return 3; }), 3);
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
