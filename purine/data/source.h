// Operators that bring labelled images into a graph.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "purine/data/augment.h"
#include "purine/data/dataset.h"
#include "purine/graph/graph.h"

namespace purine {
class KernelRegistry;
}

namespace purine::data {

/// What a broken image does.
enum class OnBadImage : std::uint8_t {
  error,  ///< an Error that names its path
  skip,   ///< it is replaced by the next good one in the epoch's order, and counted
};

/// `error`, `skip`.
std::string_view name_of(OnBadImage on_bad_image);

/// The broken images that were skipped, each once however often it was met. Used by several threads at once.
class SkippedImages {
 public:
  struct Entry {
    std::string path;
    std::string reason;
  };
  /// Called once for each image, by one thread at a time; it must not use the SkippedImages that calls it.
  using Handler = std::function<void(const Entry&)>;

  explicit SkippedImages(Handler handler = {}) : handler_(std::move(handler)) {}

  void add(const std::string& path, const std::string& reason);
  std::int64_t count() const;
  /// Sorted by path.
  std::vector<Entry> entries() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  Handler handler_;
};

struct SourceOptions {
  std::int64_t batch = 32;
  /// Of the order and the augmentation; default: the run's.
  std::optional<std::uint64_t> seed = {};
  /// Which part idx(), cifar10(), cifar100() and folder() open.
  Subset subset = Subset::train;
  /// Default: a training set is shuffled, a test set comes in order.
  std::optional<bool> shuffle = {};
  Augmentation augmentation = {};
  OnBadImage on_bad_image = OnBadImage::error;
  /// Where skipped images are counted and told; default: counted by a counter of the source's own.
  std::shared_ptr<SkippedImages> skipped = {};
};

/// A batch of N samples: `image` is f32 [N, C, H, W], `label` i64 [N].
struct Batch {
  Tensor image;
  Tensor label;
};

/// A source of batches from a dataset, at the scope's location: iteration t brings batch t of the order that
/// data::Sampler describes. Its batch extent is `options.batch`; where that doesn't divide the set, the last
/// batch of each epoch is shorter, and is run by a Program of that batch size (Contract::piece).
/// Throws Error("data_source", …) where the set has fewer samples than a batch, or for what Augmenter
/// refuses.
Batch source(Graph& graph, DatasetPtr dataset, SourceOptions options = {}, std::string_view name = "data");

/// The same from the sets that data::open_idx and so on describe.
Batch idx(Graph& graph, const std::string& folder, SourceOptions options = {},
          std::string_view name = "data");
Batch cifar10(Graph& graph, const std::string& folder, SourceOptions options = {},
              std::string_view name = "data");
Batch cifar100(Graph& graph, const std::string& folder, SourceOptions options = {},
               CifarLabels labels = CifarLabels::fine, std::string_view name = "data");
Batch folder(Graph& graph, const std::string& root, SourceOptions options = {},
             std::string_view name = "data");

struct SyntheticOptions {
  std::int64_t batch = 32;
  ImageSize image = {3, 224, 224};
  std::int64_t classes = 1000;
  std::uint64_t seed = 0;
  /// The same batch in each iteration, which costs a copy; false draws a new one each time.
  bool fixed = true;
};

/// Random images, uniform with mean 0 and variance 1, and uniform labels: for benchmarks and tests. An epoch
/// has no end.
Batch synthetic(Graph& graph, SyntheticOptions options = {}, std::string_view name = "data");

/// What is common to the sources' contracts: samples [begin, end) of a batch of `units`.
class BatchContract : public Contract {
 public:
  /// The part of a batch that this operator brings; of the whole batch begin is 0 and end is units.
  const Piece& part() const { return part_; }
  std::int64_t count() const { return part_.end - part_.begin; }

  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {0, 1, false}; }
  bool brings_samples() const override { return true; }

 protected:
  BatchContract(Piece part, ImageSize image) : part_(part), image_(image) {}
  virtual ContractPtr with_part(const Piece& part) const = 0;
  std::string part_text() const;

 private:
  Piece part_;
  ImageSize image_;
};

class DataSource final : public BatchContract {
 public:
  DataSource(DatasetPtr dataset, SourceOptions options);
  /// A part of the same order.
  DataSource(const DataSource& whole, const Piece& part);

  const Dataset& dataset() const { return *dataset_; }
  /// With the defaults filled in, but for the seed. `batch` stays the batch size of the order, whatever this
  /// operator's own is.
  const SourceOptions& options() const { return options_; }
  const Augmenter& augmenter() const { return *augmenter_; }
  SkippedImages& skipped() const { return *options_.skipped; }
  std::int64_t batches_per_epoch() const;
  /// The number of samples in an iteration's batch.
  std::int64_t batch_size(std::int64_t iteration) const;
  std::int64_t samples_per_epoch() const override { return dataset_->size(); }

  std::string_view type() const override { return "data_source"; }
  std::string attributes() const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;

 private:
  ContractPtr with_part(const Piece& part) const override;

  DatasetPtr dataset_;
  SourceOptions options_;
  std::shared_ptr<const Augmenter> augmenter_;
};

class SyntheticSource final : public BatchContract {
 public:
  explicit SyntheticSource(SyntheticOptions options);
  SyntheticSource(const SyntheticOptions& options, const Piece& part)
      : BatchContract(part, options.image), options_(options) {}

  const SyntheticOptions& options() const { return options_; }

  std::string_view type() const override { return "synthetic_source"; }
  std::string attributes() const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;

 private:
  ContractPtr with_part(const Piece& part) const override;

  SyntheticOptions options_;
};

/// The DataSource contracts of a graph, in the order of their operators.
std::vector<const DataSource*> sources(Graph& graph);

/// Registers the sources' kernels; they run on the CPU.
void register_kernels(KernelRegistry& registry);

}  // namespace purine::data
