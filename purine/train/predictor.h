// Tells the classes of images.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "purine/core/error.h"
#include "purine/io/checkpoint.h"
#include "purine/session/session.h"
#include "purine/train/network.h"

namespace purine::train {

struct Prediction {
  std::int64_t label = 0;
  std::string name;  ///< the class's
  double probability = 0;
};

/// A job's network with the weights of a checkpoint, for image files of any size and mode: they are treated
/// as the job's test set is. It needs no data set.
class Predictor {
 public:
  /// `path` is the checkpoint's, for messages. Throws Error where the checkpoint is not one of the job's
  /// network.
  Predictor(Runtime& runtime, const Job& job, const io::Checkpoint& checkpoint,
            const std::filesystem::path& path, Location device = {});

  const Task& task() const { return task_; }

  using Tell = std::function<void(const std::string& image, const std::vector<Prediction>&)>;
  using Complain = std::function<void(const Error&)>;
  /// Calls `tell` for every image, in their order, with its `count` likeliest classes, the likeliest first
  /// (of equals the one of the smaller label); or `complain`, in its place, where an image can't be read or
  /// the network answers with numbers that are not finite. Errors have the image's path. Returns how many
  /// complaints there were.
  std::int64_t predict(std::span<const std::string> images, int count, const Tell& tell,
                       const Complain& complain);

 private:
  void fill(std::size_t index, std::span<std::byte> value);
  std::vector<Prediction> likeliest(std::span<const float> probabilities, int count) const;

  Task task_;
  data::Augmenter augmenter_;
  Graph graph_;
  Tensor image_;
  Tensor probabilities_;
  std::unique_ptr<Session> session_;
  std::span<const std::string> images_;
  std::vector<std::optional<Error>> failures_;  // one for each image, written by who reads it
};

}  // namespace purine::train
