// The two halves of a Copy between ranks.
#pragma once

#include "purine/graph/contract.h"

namespace purine {

/// One half of a Copy whose ends lie at two ranks, each of which lowers its own part of the graph: `send`
/// where the input lies, `receive` where the output does. Both ranks know it by the channel, the number of
/// the Copy's operator in the logical graph. Both halves work on the memory of a host.
class HalfCopy final : public Contract {
 public:
  enum class Side : std::uint8_t { send, receive };

  HalfCopy(Side side, TensorInfo info, std::int32_t peer, std::uint32_t channel)
      : side_(side), info_(info), peer_(peer), channel_(channel) {}

  Side side() const { return side_; }
  const TensorInfo& info() const { return info_; }
  /// The other rank.
  std::int32_t peer() const { return peer_; }
  std::uint32_t channel() const { return channel_; }

  std::string_view type() const override { return side_ == Side::send ? "send" : "receive"; }
  std::string attributes() const override {
    return "peer=" + std::to_string(peer_) + " channel=" + std::to_string(channel_);
  }
  std::vector<TensorInfo> infer(std::span<const TensorInfo>) const override {
    if (side_ == Side::send) return {};
    return {info_};
  }
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo>) const override { return {}; }
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo>, std::span<const TensorInfo>) const override {
    return {0, static_cast<double>(info_.bytes())};
  }
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {}; }
  bool has_side_effect() const override { return side_ == Side::send; }

 private:
  Side side_;
  TensorInfo info_;
  std::int32_t peer_;
  std::uint32_t channel_;
};

/// The contract as a half of a Copy; null if it is none.
inline const HalfCopy* as_half_copy(const Contract& contract) {
  return dynamic_cast<const HalfCopy*>(&contract);
}

}  // namespace purine
