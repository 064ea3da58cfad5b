#include "purine/data/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "purine/core/error.h"
#include "purine/data/sampler.h"

namespace purine::data {
namespace {

std::shared_ptr<const Augmenter> make_augmenter(const Dataset& dataset, const SourceOptions& options) {
  return std::make_shared<const Augmenter>(options.augmentation, dataset.image_size());
}

Batch add_source(Graph& graph, ContractPtr contract, std::string_view name) {
  const Operator op = graph.add(std::move(contract), {}, name);
  return {op.output(0), op.output(1)};
}

}  // namespace

std::string_view name_of(OnBadImage on_bad_image) {
  return on_bad_image == OnBadImage::error ? "error" : "skip";
}

void SkippedImages::add(const std::string& path, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  const auto place =
      std::lower_bound(entries_.begin(), entries_.end(), path,
                       [](const Entry& entry, const std::string& to) { return entry.path < to; });
  if (place != entries_.end() && place->path == path) return;
  const auto added = entries_.insert(place, {path, reason});
  if (handler_) handler_(*added);
}

std::int64_t SkippedImages::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(entries_.size());
}

std::vector<SkippedImages::Entry> SkippedImages::entries() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

std::vector<TensorInfo> BatchContract::infer(std::span<const TensorInfo> inputs) const {
  if (!inputs.empty()) {
    throw Error(type(), fmt::format("has {} inputs, expected none", inputs.size()));
  }
  return {{{count(), image_.channels, image_.height, image_.width}, DType::f32}, {{count()}, DType::i64}};
}

std::vector<SplitRule> BatchContract::split_rules(std::span<const TensorInfo> /*inputs*/) const {
  SplitRule samples;
  samples.outputs = {0, 0};
  samples.units = count();
  return {samples};
}

ContractPtr BatchContract::piece(const SplitRule& rule, const Piece& piece,
                                 std::span<const TensorInfo> /*whole_inputs*/) const {
  if (piece.units == rule.units) {
    return with_part({part_.begin + piece.begin, part_.begin + piece.end, part_.units});
  }
  if (count() != part_.units) {
    throw Error(type(),
                fmt::format("is samples [{}, {}) of a batch of {}; another batch size ({}) doesn't say which "
                            "samples they become",
                            part_.begin, part_.end, part_.units, piece.units),
                "change the batch size first, then split");
  }
  return with_part(piece);
}

std::string BatchContract::part_text() const {
  if (count() == part_.units) return fmt::format("samples={}", count());
  return fmt::format("samples=[{}, {})/{}", part_.begin, part_.end, part_.units);
}

DataSource::DataSource(DatasetPtr dataset, SourceOptions options)
    : BatchContract({0, options.batch, options.batch}, make_augmenter(*dataset, options)->output()),
      dataset_(std::move(dataset)),
      options_(std::move(options)),
      augmenter_(make_augmenter(*dataset_, options_)) {
  if (options_.batch < 1) {
    throw Error(type(), fmt::format("batch is {}, expected at least 1", options_.batch));
  }
  if (options_.batch > dataset_->size()) {
    throw Error(type(), fmt::format("batch is {}, but the {} set has only {} samples", options_.batch,
                                    name_of(options_.subset), dataset_->size()));
  }
  if (!options_.shuffle) options_.shuffle = options_.subset == Subset::train;
  if (!options_.skipped) options_.skipped = std::make_shared<SkippedImages>();
}

DataSource::DataSource(const DataSource& whole, const Piece& part)
    : BatchContract(part, whole.augmenter().output()),
      dataset_(whole.dataset_),
      options_(whole.options_),
      augmenter_(whole.augmenter_) {}

std::int64_t DataSource::batches_per_epoch() const {
  return Sampler(dataset_->size(), options_.batch, 0, false).batches_per_epoch();
}

std::int64_t DataSource::batch_size(std::int64_t iteration) const {
  return Sampler(dataset_->size(), options_.batch, 0, false).batch_size(iteration);
}

std::string DataSource::attributes() const {
  const std::string augmentation = options_.augmentation.text();
  return fmt::format("set={:016x} size={} batch={} {} seed={} shuffle={} on_bad_image={}{}{}",
                     dataset_->fingerprint(), dataset_->size(), options_.batch, part_text(),
                     options_.seed ? std::to_string(*options_.seed) : "run", *options_.shuffle,
                     name_of(options_.on_bad_image), augmentation.empty() ? "" : " ", augmentation);
}

Cost DataSource::cost(std::span<const TensorInfo> /*inputs*/, std::span<const TensorInfo> outputs) const {
  // Decoding a photograph takes a core as long as 10^8 operations of a matrix product, a few milliseconds; an
  // image in memory is hardly more than the bytes it moves.
  const double operations_per_sample = dataset_->encoded() ? 1e8 : 0;
  const double elements = static_cast<double>(outputs[0].shape.elements());
  return {operations_per_sample * static_cast<double>(count()) + 2 * elements,
          static_cast<double>(outputs[0].bytes() + outputs[1].bytes()) + elements};
}

ContractPtr DataSource::with_part(const Piece& part) const {
  return std::make_shared<DataSource>(*this, part);
}

SyntheticSource::SyntheticSource(SyntheticOptions options)
    : BatchContract({0, options.batch, options.batch}, options.image), options_(options) {
  if (options.batch < 1 || options.classes < 1 || options.classes > 0xffffffffLL) {
    throw Error(type(), fmt::format("has batch {} and {} classes, expected at least 1 of each", options.batch,
                                    options.classes));
  }
}

std::string SyntheticSource::attributes() const {
  return fmt::format("classes={} batch={} {} seed={} fixed={}", options_.classes, options_.batch, part_text(),
                     options_.seed, options_.fixed);
}

Cost SyntheticSource::cost(std::span<const TensorInfo> /*inputs*/,
                           std::span<const TensorInfo> outputs) const {
  const double bytes = static_cast<double>(outputs[0].bytes() + outputs[1].bytes());
  return {options_.fixed ? 0 : 10.0 * static_cast<double>(outputs[0].shape.elements()), 2 * bytes};
}

ContractPtr SyntheticSource::with_part(const Piece& part) const {
  return std::make_shared<SyntheticSource>(options_, part);
}

Batch source(Graph& graph, DatasetPtr dataset, SourceOptions options, std::string_view name) {
  return add_source(graph, std::make_shared<DataSource>(std::move(dataset), std::move(options)), name);
}

Batch idx(Graph& graph, const std::string& folder, SourceOptions options, std::string_view name) {
  return source(graph, open_idx(folder, options.subset), std::move(options), name);
}

Batch cifar10(Graph& graph, const std::string& folder, SourceOptions options, std::string_view name) {
  return source(graph, open_cifar10(folder, options.subset), std::move(options), name);
}

Batch cifar100(Graph& graph, const std::string& folder, SourceOptions options, CifarLabels labels,
               std::string_view name) {
  return source(graph, open_cifar100(folder, options.subset, labels), std::move(options), name);
}

Batch folder(Graph& graph, const std::string& root, SourceOptions options, std::string_view name) {
  return source(graph, open_folder(root, options.subset), std::move(options), name);
}

Batch synthetic(Graph& graph, SyntheticOptions options, std::string_view name) {
  return add_source(graph, std::make_shared<SyntheticSource>(options), name);
}

std::vector<const DataSource*> sources(Graph& graph) {
  std::vector<const DataSource*> found;
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    if (const auto* source = dynamic_cast<const DataSource*>(&graph.op(i).contract()))
      found.push_back(source);
  }
  return found;
}

}  // namespace purine::data
