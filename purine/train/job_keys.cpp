#include "purine/train/job_keys.h"

#include <utility>

#include "purine/models/models.h"
#include "purine/train/job_keys_helpers.h"

namespace purine::train {
namespace {

using enum OnResume;

std::vector<JobKey> model_keys() {
  using Model = Job::Model;
  std::vector<std::string> names;
  for (const models::Model& model : models::all_models()) names.emplace_back(model.name);
  return {
      {.section = "model",
       .name = "name",
       .help = "The network.",
       .member = member(&Job::model, &Model::name),
       .choices = std::move(names),
       .required = true},
      {.section = "model",
       .name = "classes",
       .help = "Outputs of the network; 0: as many as the data set has classes.",
       .member = member(&Job::model, &Model::classes),
       .range = between(0, 1 << 24)},
  };
}

std::vector<JobKey> data_keys() {
  using Data = Job::Data;
  return {
      {.section = "data",
       .name = "format",
       .help = "What the folder holds: `idx` (MNIST's files, with or without gzip), `cifar10` or `cifar100` "
               "(their binary versions), or `folder` (a folder of images for each class, below `train` and "
               "`val`).",
       .member = member(&Job::data, &Data::format),
       .choices = {"idx", "cifar10", "cifar100", "folder"}},
      {.section = "data",
       .name = "folder",
       .help = "The folder of the data set.",
       .member = member(&Job::data, &Data::folder),
       .required = true,
       .on_resume = may_change},
      {.section = "data",
       .name = "labels",
       .help = "Which of CIFAR-100's labels: its 100 classes or its 20 groups of classes.",
       .member = member(&Job::data, &Data::labels),
       .choices = {"fine", "coarse"},
       .only_with = JobCondition{"data.format", {"cifar100"}}},
      {.section = "data",
       .name = "batch",
       .help = "Images of a training step. The last step of an epoch takes what is left.",
       .member = member(&Job::data, &Data::batch),
       .range = between(1, 1 << 20)},
      {.section = "data",
       .name = "evaluation_batch",
       .help = "Images of an evaluation step; 0: as in training.",
       .member = member(&Job::data, &Data::evaluation_batch),
       .range = between(0, 1 << 20),
       .on_resume = may_change},
      {.section = "data",
       .name = "channels",
       .help = "1 makes grey of colours, 3 repeats grey; 0: as the data set has them (3 for `folder`).",
       .member = member(&Job::data, &Data::channels),
       .range = between(0, 3)},
      {.section = "data",
       .name = "resize",
       .help = "The shorter side of an image becomes this many pixels; 0: it stays.",
       .member = member(&Job::data, &Data::resize),
       .range = between(0, 1 << 14),
       .only_with =
           JobCondition{
               "data.crop", {"none", "center", "random"}, "evaluation_resize sets the size for evaluation"}},
      {.section = "data",
       .name = "evaluation_resize",
       .help = "The same for evaluation and prediction; 0: as `resize`, or 8/7 of `crop_size` with "
               "`crop = \"random_resized\"`.",
       .member = member(&Job::data, &Data::evaluation_resize),
       .range = between(0, 1 << 14)},
      {.section = "data",
       .name = "crop",
       .help = "Which part of an image training takes: all, the middle, a random place, or a random place of "
               "random area and shape that is resized. Evaluation takes the middle.",
       .member = member(&Job::data, &Data::crop),
       .choices = {"none", "center", "random", "random_resized"}},
      {.section = "data",
       .name = "crop_size",
       .help = "Side of the square that a crop takes, in pixels; 0: the size of the set's images.",
       .member = member(&Job::data, &Data::crop_size),
       .range = between(0, 1 << 14),
       .only_with =
           JobCondition{"data.crop", {"center", "random", "random_resized"}, "set crop = \"center\""}},
      {.section = "data",
       .name = "padding",
       .help = "Black pixels put around a training image before a random crop.",
       .member = member(&Job::data, &Data::padding),
       .range = between(0, 1 << 10),
       .only_with = JobCondition{"data.crop", {"random"}}},
      {.section = "data",
       .name = "area",
       .help = "Least and greatest share of the image's area.",
       .member = member(&Job::data, &Data::area),
       .range = share_above_zero(),
       .lengths = {2},
       .only_with = JobCondition{"data.crop", {"random_resized"}}},
      {.section = "data",
       .name = "ratio",
       .help = "Least and greatest width / height.",
       .member = member(&Job::data, &Data::ratio),
       .range = between(0.001, 1000),
       .lengths = {2},
       .only_with = JobCondition{"data.crop", {"random_resized"}}},
      {.section = "data",
       .name = "flip",
       .help = "Probability that a training image is mirrored left to right.",
       .member = member(&Job::data, &Data::flip),
       .range = between(0, 1)},
      {.section = "data",
       .name = "mean",
       .help =
           "Subtracted from the channels, whose values lie between 0 and 1: one number for all, or one for "
           "each.",
       .member = member(&Job::data, &Data::mean),
       .lengths = {0, 1, 3}},
      {.section = "data",
       .name = "deviation",
       .help = "What the channels are divided by after that: one number for all, or one for each.",
       .member = member(&Job::data, &Data::deviation),
       .range = above(0),
       .lengths = {0, 1, 3}},
      {.section = "data",
       .name = "class_names",
       .help =
           "What the classes are called, in the order of their labels; empty: as the data set calls them.",
       .member = member(&Job::data, &Data::class_names)},
      {.section = "data",
       .name = "on_bad_image",
       .help = "A broken image ends the run, or is left out, counted and reported.",
       .member = member(&Job::data, &Data::on_bad_image),
       .choices = {"error", "skip"},
       .only_with = JobCondition{"data.format", {"folder"}}},
  };
}

std::vector<JobKey> optimizer_keys() {
  using Optimizer = Job::Optimizer;
  const JobCondition with_momentum{"optimizer.name", {"momentum", "nesterov"}};
  const JobCondition with_moments{"optimizer.name", {"adam", "adamw"}};
  return {
      {.section = "optimizer",
       .name = "name",
       .help = "The update rule.",
       .member = member(&Job::optimizer, &Optimizer::name),
       .choices = {"sgd", "momentum", "nesterov", "adam", "adamw"}},
      {.section = "optimizer",
       .name = "learning_rate",
       .help = "The learning rate that the schedule starts from.",
       .member = member(&Job::optimizer, &Optimizer::learning_rate),
       .range = above(0)},
      {.section = "optimizer",
       .name = "momentum",
       .help = "Share of the velocity that a step keeps.",
       .member = member(&Job::optimizer, &Optimizer::momentum),
       .range = below(0, 1),
       .only_with = with_momentum},
      {.section = "optimizer",
       .name = "weight_decay",
       .help = "Added to the gradient as a multiple of the weight (adamw: taken off the weight itself, times "
               "the learning rate). Biases and the parameters of normalisation have none.",
       .member = member(&Job::optimizer, &Optimizer::weight_decay),
       .range = at_least(0)},
      {.section = "optimizer",
       .name = "beta1",
       .help = "Decay of the mean of the gradients.",
       .member = member(&Job::optimizer, &Optimizer::beta1),
       .range = below(0, 1),
       .only_with = with_moments},
      {.section = "optimizer",
       .name = "beta2",
       .help = "Decay of the mean of their squares.",
       .member = member(&Job::optimizer, &Optimizer::beta2),
       .range = below(0, 1),
       .only_with = with_moments},
      {.section = "optimizer",
       .name = "epsilon",
       .help = "Added to the denominator.",
       .member = member(&Job::optimizer, &Optimizer::epsilon),
       .range = above(0),
       .only_with = with_moments},
      {.section = "optimizer",
       .name = "clip_value",
       .help = "No element of a gradient gets farther than this from 0; 0: no limit.",
       .member = member(&Job::optimizer, &Optimizer::clip_value),
       .range = at_least(0)},
      {.section = "optimizer",
       .name = "clip_norm",
       .help = "All gradients are scaled down together where their norm is above this; 0: no limit.",
       .member = member(&Job::optimizer, &Optimizer::clip_norm),
       .range = at_least(0)},
      {.section = "optimizer",
       .name = "schedule",
       .help =
           "What becomes of the learning rate: it stays; it is multiplied with `step_factor` every "
           "`step_epochs`; or it falls to `final_learning_rate` over the run, as a power of what is left or "
           "as half a cosine.",
       .member = member(&Job::optimizer, &Optimizer::schedule),
       .choices = {"constant", "step", "polynomial", "cosine"}},
      {.section = "optimizer",
       .name = "warmup_epochs",
       .help = "Over this many epochs the learning rate first rises in a line, from near 0.",
       .member = member(&Job::optimizer, &Optimizer::warmup_epochs),
       .range = between(0, 1 << 20)},
      {.section = "optimizer",
       .name = "step_epochs",
       .help = "Epochs after which the learning rate falls again.",
       .member = member(&Job::optimizer, &Optimizer::step_epochs),
       .range = above(0),
       .only_with = JobCondition{"optimizer.schedule", {"step"}}},
      {.section = "optimizer",
       .name = "step_factor",
       .help = "What it is multiplied with then.",
       .member = member(&Job::optimizer, &Optimizer::step_factor),
       .range = share_above_zero(),
       .only_with = JobCondition{"optimizer.schedule", {"step"}}},
      {.section = "optimizer",
       .name = "power",
       .help = "The exponent; 1 is a line.",
       .member = member(&Job::optimizer, &Optimizer::power),
       .range = above(0),
       .only_with = JobCondition{"optimizer.schedule", {"polynomial"}}},
      {.section = "optimizer",
       .name = "final_learning_rate",
       .help = "Where the schedule ends.",
       .member = member(&Job::optimizer, &Optimizer::final_learning_rate),
       .range = at_least(0),
       .only_with = JobCondition{"optimizer.schedule", {"polynomial", "cosine"}}},
  };
}

std::vector<JobKey> train_keys() {
  using Train = Job::Train;
  return {
      {.section = "train",
       .name = "epochs",
       .help = "Passes over the training set.",
       .member = member(&Job::train, &Train::epochs),
       .range = between(1, 1 << 20),
       .on_resume = follows_schedule},
      {.section = "train",
       .name = "steps",
       .help = "Steps of the whole run, which then may end within an epoch; 0: `epochs` decides.",
       .member = member(&Job::train, &Train::steps),
       .range = between(0, 1e12),
       .on_resume = follows_schedule},
      {.section = "train",
       .name = "seed",
       .help = "Seed of all random numbers: first weights, order of images, augmentation, dropout.",
       .member = member(&Job::train, &Train::seed),
       .range = at_least(0)},
      {.section = "train",
       .name = "workers",
       .help =
           "Threads that run operators; 0: one for each core that the process may use. The results are the "
           "same with any number.",
       .member = member(&Job::train, &Train::workers),
       .range = between(0, 1024),
       .on_resume = may_change},
      {.section = "train",
       .name = "scheduling",
       .help = "How workers share operators: whole ones side by side, each on one worker; each divided into "
               "parts that several workers run; or whichever of the two is predicted to be the faster, which "
               "the beginning of a run tells. The results are the same.",
       .member = member(&Job::train, &Train::scheduling),
       .choices = {"auto", "side_by_side", "divided"},
       .on_resume = may_change},
      {.section = "train",
       .name = "convolutions",
       .help = "How convolutions are computed: with the algorithm that is the fastest for their shapes by a "
               "rule, the same on every machine; with the one that is by measuring, which is done once and "
               "kept in `~/.cache/purine`; or always as they are defined, which rounds a little less.",
       .member = member(&Job::train, &Train::convolutions),
       .choices = {"fastest", "measured", "direct"}},
      {.section = "train",
       .name = "memory_limit",
       .help =
           "Megabytes (of 10^6 bytes) that a training step may need in each process, on all of its devices "
           "together: variables, activations and scratch memory, as planned before the first step. Where it "
           "needs more, activations that are cheap to compute (rectifiers, normalisation, pooling, dropout) "
           "are computed again for the backward pass instead of being kept; the results are the same. "
           "0: no limit.",
       .member = member(&Job::train, &Train::memory_limit),
       .range = between(0, 1e9),
       .on_resume = may_change},
      {.section = "train",
       .name = "run_folder",
       .help =
           "Where checkpoints, metrics and the trace go. Unless a run is resumed it must not exist. Empty: "
           "`runs/NAME` for the job file `NAME.toml`.",
       .member = member(&Job::train, &Train::run_folder),
       .on_resume = may_change},
      {.section = "train",
       .name = "evaluate_every",
       .help = "Epochs between two evaluations on the test set; 0: only at the end.",
       .member = member(&Job::train, &Train::evaluate_every),
       .range = at_least(0),
       .on_resume = may_change},
      {.section = "train",
       .name = "report_every",
       .help = "Steps between two entries of the metrics and, where no terminal shows a bar, two lines of "
               "progress.",
       .member = member(&Job::train, &Train::report_every),
       .range = at_least(1),
       .on_resume = may_change},
  };
}

std::vector<JobKey> checkpoint_keys() {
  using Checkpoint = Job::Checkpoint;
  return {
      {.section = "checkpoint",
       .name = "every_epochs",
       .help = "Epochs between two checkpoints; 0: none for epochs. The end of a run is always saved.",
       .member = member(&Job::checkpoint, &Checkpoint::every_epochs),
       .range = between(0, 1 << 20),
       .on_resume = may_change},
      {.section = "checkpoint",
       .name = "every_steps",
       .help = "Steps between two checkpoints; 0: none for steps.",
       .member = member(&Job::checkpoint, &Checkpoint::every_steps),
       .range = between(0, 1e12),
       .on_resume = may_change},
      {.section = "checkpoint",
       .name = "keep",
       .help = "How many checkpoints are kept: the newest.",
       .member = member(&Job::checkpoint, &Checkpoint::keep),
       .range = between(1, 1 << 20),
       .on_resume = may_change},
      {.section = "checkpoint",
       .name = "keep_best",
       .help = "Besides those, the one with the best test accuracy is kept.",
       .member = member(&Job::checkpoint, &Checkpoint::keep_best),
       .on_resume = may_change},
  };
}

std::vector<JobKey> trace_keys() {
  using Trace = Job::Trace;
  return {
      {.section = "trace",
       .name = "steps",
       .help = "How many steps are traced, operator by operator; 0: none.",
       .member = member(&Job::trace, &Trace::steps),
       .range = between(0, 1e12),
       .on_resume = may_change},
      {.section = "trace",
       .name = "first_step",
       .help = "The first step that is traced, counted from 0.",
       .member = member(&Job::trace, &Trace::first_step),
       .range = between(0, 1e12),
       .on_resume = may_change},
      {.section = "trace",
       .name = "megabytes",
       .help = "The most that the trace's file takes; what comes later is left out.",
       .member = member(&Job::trace, &Trace::megabytes),
       .range = between(1, 1 << 14),
       .on_resume = may_change},
  };
}

}  // namespace

const std::vector<JobKey>& job_keys() {
  static const std::vector<JobKey> keys = [] {
    std::vector<JobKey> all;
    for (auto* section : {model_keys, data_keys, optimizer_keys, train_keys, parallel_keys, emulated_keys,
                          checkpoint_keys, trace_keys}) {
      for (JobKey& key : section()) all.push_back(std::move(key));
    }
    return all;
  }();
  return keys;
}

std::vector<std::string> job_sections() {
  std::vector<std::string> sections;
  for (const JobKey& key : job_keys()) {
    if (sections.empty() || sections.back() != key.section) sections.push_back(key.section);
  }
  return sections;
}

const JobKey* find_job_key(std::string_view section, std::string_view name) {
  for (const JobKey& key : job_keys()) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

const JobKey* find_job_key(std::string_view path) {
  const std::size_t dot = path.find('.');
  return dot == std::string_view::npos ? nullptr : find_job_key(path.substr(0, dot), path.substr(dot + 1));
}

}  // namespace purine::train
