// A data source for tests: a whole contract whose kernel each test writes itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purine/graph/contract.h"

namespace purine::test {

/// Brings batches of samples, each of a shape and with a label. A part of it has the samples [begin, end) of
/// each batch: what `SampleSource::part` says to a kernel of type "test_samples".
class SampleSource final : public Contract {
 public:
  struct Samples {
    std::vector<std::int64_t> extents;  ///< of one sample
    DType label = DType::i32;
    std::int64_t per_epoch = 0;
  };

  SampleSource(Samples samples, std::int64_t batch)
      : SampleSource(std::move(samples), Piece{0, batch, batch}) {}
  SampleSource(Samples samples, Piece part) : samples_(std::move(samples)), part_(part) {}
  Piece part() const { return part_; }
  std::string_view type() const override { return "test_samples"; }
  std::string attributes() const override {
    return std::to_string(part_.begin) + "-" + std::to_string(part_.end) + "/" + std::to_string(part_.units);
  }
  std::vector<TensorInfo> infer(std::span<const TensorInfo>) const override {
    const std::int64_t count = part_.end - part_.begin;
    std::vector<std::int64_t> extents = {count};
    extents.insert(extents.end(), samples_.extents.begin(), samples_.extents.end());
    return {{Shape(extents), DType::f32}, {{count}, samples_.label}};
  }
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo>) const override {
    return {{{}, {0, 0}, part_.end - part_.begin, false}};
  }
  ContractPtr piece(const SplitRule&, const Piece& piece, std::span<const TensorInfo>) const override {
    return std::make_shared<SampleSource>(samples_, piece);
  }
  Cost cost(std::span<const TensorInfo>, std::span<const TensorInfo>) const override { return {}; }
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {}; }
  bool brings_samples() const override { return true; }
  std::int64_t samples_per_epoch() const override { return samples_.per_epoch; }

 private:
  Samples samples_;
  Piece part_;
};

}  // namespace purine::test
