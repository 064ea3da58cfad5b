// What an operator promises. Every operator type implements all of it, or it does not compile.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purine/core/error.h"
#include "purine/core/shape.h"
#include "purine/graph/tensor.h"

namespace purine {

class Contract;
using ContractPtr = std::shared_ptr<const Contract>;

/// One way to divide an operator into pieces that can run at different places. The division is counted in
/// `units` (a batch of 64 samples has 64 units); every tensor that is split holds a whole number of elements
/// per unit along its split dimension.
/// Worked example, a matrix product [4, 3] x [3, 2]: rows {inputs {0, whole}, outputs {0}, units 4}; columns
/// {inputs {whole, 1}, outputs {1}, units 2}; inner {inputs {1, 0}, outputs {partial}, units 3}.
struct SplitRule {
  static constexpr int whole = -1;    ///< every piece has the whole tensor
  static constexpr int partial = -2;  ///< an output only: the pieces' outputs are to be summed
  std::vector<int> inputs;            ///< per input: the dimension that is split, or `whole`
  std::vector<int> outputs;           ///< per output: the dimension that is split, `whole` or `partial`
  std::int64_t units = 0;
  /// True where the pieces together are not exactly the whole: batch normalisation with statistics per piece.
  bool approximate = false;
};

/// The part of a split operator: units [begin, end) of `units`. `units` may differ from the rule's: the same
/// mechanism gives an operator for another batch size (begin 0, end = units).
struct Piece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t units = 0;
};

/// Work of one execution.
struct Cost {
  double operations = 0;  ///< floating-point operations; a multiply-add counts 2
  double bytes = 0;       ///< bytes read and written in main memory
};

/// Output `output` may lie in the storage of input `input`.
struct Sharing {
  enum class Kind : std::uint8_t {
    overwrite,  ///< the kernel computes correctly if both are the same storage (the input is dead afterwards)
    view,  ///< the output is the input's bytes under another shape; the kernel has nothing to do when shared
  };
  int input = 0;
  int output = 0;
  Kind kind = Kind::overwrite;
};

/// Physical order of a rank-4 tensor's elements. Every other tensor is plain.
enum class Layout : std::uint8_t {
  plain,          ///< row-major: N, C, H, W
  channels_last,  ///< N, H, W, C in memory; the logical shape stays N, C, H, W
};

/// Which of an operator's tensors may have another layout than plain: bit i of `inputs` is for input i (the
/// last bit also for all further ones). All flexible rank-4 tensors of one operator have the same layout; all
/// its other tensors are plain.
struct LayoutRule {
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
  bool prefers_channels_last = false;
  static constexpr std::uint32_t all = 0xffffffffU;
};

/// Handed to Contract::gradient: the operator and the gradients of its outputs.
class GradientContext {
 public:
  GradientContext(Operator op, std::span<const Tensor> output_gradients, const std::vector<bool>& needed)
      : op_(op), output_gradients_(output_gradients), needed_(needed) {}

  Operator op() const { return op_; }
  Tensor input(int index) const;
  Tensor output(int index) const;
  /// Gradient of the loss by an output; not valid where nothing flows back from it.
  Tensor output_gradient(int index) const { return output_gradients_[static_cast<std::size_t>(index)]; }
  /// True where the gradient of an input is wanted; building one that is not wanted is wasted work.
  bool needs(int index) const { return needed_[static_cast<std::size_t>(index)]; }

 private:
  Operator op_;
  std::span<const Tensor> output_gradients_;
  const std::vector<bool>& needed_;
};

/// The contract of an operator: an immutable value, shared by operators with equal attributes.
class Contract : public std::enable_shared_from_this<Contract> {
 public:
  virtual ~Contract() = default;

  /// The operator's type, in snake case: `conv2d`.
  virtual std::string_view type() const = 0;
  /// The attributes as stable text for dumps and hashes: `stride=[2, 2] groups=1`; empty if there are none.
  virtual std::string attributes() const = 0;
  /// Shapes and dtypes of the outputs. Wrong inputs throw Error(type(), message, hint); the graph adds the
  /// path.
  virtual std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const = 0;
  /// Adds operators that compute the gradients of the inputs, one entry an input; an entry that is not valid
  /// means that nothing flows back. A contract without a gradient returns `not_differentiable()`.
  virtual std::vector<Tensor> gradient(const GradientContext& context) const = 0;
  /// All ways to divide the operator; none is a valid answer.
  virtual std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const = 0;
  /// The contract of one piece under one of the rules above. Most contracts are the same for every piece and
  /// return `self()`; one whose attributes hold extents, element offsets or divisors adapts them.
  virtual ContractPtr piece(const SplitRule& rule, const Piece& piece,
                            std::span<const TensorInfo> whole_inputs) const = 0;
  virtual Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const = 0;
  virtual std::vector<Sharing> sharing() const = 0;
  virtual LayoutRule layouts() const = 0;
  /// True for operators that must run though nobody reads their outputs, and in every iteration.
  virtual bool has_side_effect() const { return false; }
  /// True for an operator without inputs that brings samples into the graph (a data source): the leading
  /// dimension of each of its outputs counts the samples of a batch. Its outputs have two slots, so that it
  /// runs up to an iteration ahead of their readers.
  virtual bool brings_samples() const { return false; }
  /// For one that brings samples: how many an epoch has, 0 if they never end. An epoch takes whole batches
  /// and, where that leaves a remainder, a shorter one.
  virtual std::int64_t samples_per_epoch() const { return 0; }
  /// True for Copy alone: its inputs may be at other locations than the operator and its outputs.
  virtual bool crosses_locations() const { return false; }

 protected:
  ContractPtr self() const { return shared_from_this(); }
  /// What `gradient` returns when there is no gradient by design; the builder turns it into an error that
  /// names the operator only if the loss depends on it through floating inputs that need a gradient.
  static std::vector<Tensor> not_differentiable() { return {}; }
};

}  // namespace purine
