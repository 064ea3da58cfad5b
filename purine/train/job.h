// What to train, on what, and how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace purine::train {

/// A job: what a job file says, with the default of every key that it leaves out. Each member is a key of the
/// job file, in the section of its struct; job_keys() says what the keys mean and which values they take.
struct Job {
  struct Model {
    std::string name = {};
    std::int64_t classes = 0;
    bool operator==(const Model& other) const = default;
  };
  struct Data {
    std::string format = "idx";
    std::string folder = {};
    std::string labels = "fine";
    std::int64_t batch = 64;
    std::int64_t evaluation_batch = 0;
    std::int64_t channels = 0;
    std::int64_t resize = 0;
    std::int64_t evaluation_resize = 0;
    std::string crop = "none";
    std::int64_t crop_size = 0;
    std::int64_t padding = 0;
    std::vector<double> area = {0.08, 1.0};
    std::vector<double> ratio = {0.75, 4.0 / 3.0};
    double flip = 0;
    std::vector<double> mean = {};
    std::vector<double> deviation = {};
    std::vector<std::string> class_names = {};
    std::string on_bad_image = "error";
    bool operator==(const Data& other) const = default;
  };
  struct Optimizer {
    std::string name = "momentum";
    double learning_rate = 0.01;
    double momentum = 0.9;
    double weight_decay = 0;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double clip_value = 0;
    double clip_norm = 0;
    std::string schedule = "constant";
    double warmup_epochs = 0;
    double step_epochs = 30;
    double step_factor = 0.1;
    double power = 1;
    double final_learning_rate = 0;
    bool operator==(const Optimizer& other) const = default;
  };
  struct Train {
    std::int64_t epochs = 1;
    std::int64_t steps = 0;
    std::int64_t seed = 1;
    std::int64_t workers = 0;
    std::string scheduling = "auto";
    std::string convolutions = "fastest";
    double memory_limit = 0;
    std::string run_folder = {};
    std::int64_t evaluate_every = 1;
    std::int64_t report_every = 50;
    bool operator==(const Train& other) const = default;
  };
  struct Parallel {
    std::string scheme = "auto";
    std::string devices = {};
    std::string mesh = {};
    std::vector<double> shares = {};
    std::string all_reduce = "auto";
    std::string gradient_format = "f32";
    std::string update = "everywhere";
    std::vector<std::string> output_layers = {};
    std::vector<std::string> input_layers = {};
    std::int64_t micro_batches = 0;
    std::vector<double> stage_shares = {};
    std::int64_t bucket_kib = 1024;
    bool synchronized_batch_normalization = false;
    double stall_limit = 30;
    bool operator==(const Parallel& other) const = default;
  };
  struct Emulated {
    double memory_gib = 4;
    double copy_gb_per_s = 12;
    double copy_us = 10;
    bool operator==(const Emulated& other) const = default;
  };
  struct Checkpoint {
    std::int64_t every_epochs = 1;
    std::int64_t every_steps = 0;
    std::int64_t keep = 3;
    bool keep_best = false;
    bool operator==(const Checkpoint& other) const = default;
  };
  struct Trace {
    std::int64_t first_step = 10;
    std::int64_t steps = 0;
    std::int64_t megabytes = 64;
    bool operator==(const Trace& other) const = default;
  };

  Model model = {};
  Data data = {};
  Optimizer optimizer = {};
  Train train = {};
  Parallel parallel = {};
  Emulated emulated = {};
  Checkpoint checkpoint = {};
  Trace trace = {};

  bool operator==(const Job& other) const = default;
};

}  // namespace purine::train
