// Which sample comes when.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace purine::data {

/// The order of the samples: a function of the seed and the iteration alone, so that a run that is resumed at
/// an iteration goes on exactly as the one that never stopped.
///
/// Every epoch goes through all samples once, in batches of the given size; the last one of an epoch is
/// shorter where the sizes don't divide. 10 samples in batches of 4: iterations 0, 1, 2 are epoch 0 with 4, 4
/// and 2 samples, iteration 3 begins epoch 1. Shuffled, each epoch has a permutation of its own (Fisher-Yates
/// on the numbers of purine::Random), otherwise samples come in their own order. All functions may be called
/// by several threads at once.
class Sampler {
 public:
  /// `size` samples, at least 1 and below 2^32, in batches of `batch`, at least 1; else throws
  /// Error("sampler").
  Sampler(std::int64_t size, std::int64_t batch, std::uint64_t seed, bool shuffle);

  struct Position {
    std::int64_t epoch = 0;
    std::int64_t batch = 0;  ///< within the epoch
    bool operator==(const Position& other) const = default;
  };

  std::int64_t size() const { return size_; }
  std::int64_t batch() const { return batch_; }
  std::int64_t batches_per_epoch() const { return (size_ + batch_ - 1) / batch_; }
  Position position(std::int64_t iteration) const {
    return {iteration / batches_per_epoch(), iteration % batches_per_epoch()};
  }
  std::int64_t iteration(const Position& position) const {
    return position.epoch * batches_per_epoch() + position.batch;
  }
  /// The number of samples in an iteration's batch.
  std::int64_t batch_size(std::int64_t iteration) const;
  /// The size of each epoch's last batch.
  std::int64_t last_batch_size() const { return size_ - (batches_per_epoch() - 1) * batch_; }

  using Order = std::vector<std::uint32_t>;
  /// The samples of an epoch in their order; null where they come in their own. The two orders asked for last
  /// are kept, since two epochs are under way at once where one ends.
  std::shared_ptr<const Order> order(std::int64_t epoch) const;
  /// The sample at a place, below size(), of an epoch.
  std::int64_t sample(std::int64_t epoch, std::int64_t place) const;

 private:
  struct Kept {
    std::int64_t epoch = -1;
    std::shared_ptr<const Order> order;
  };

  std::int64_t size_;
  std::int64_t batch_;
  std::uint64_t seed_;
  bool shuffle_;
  mutable std::mutex mutex_;
  mutable Kept kept_[2];  // the one used last in front
};

}  // namespace purine::data
