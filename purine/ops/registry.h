// All operator types, each with sample uses that the tests sweep over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/contract.h"

namespace purine::ops {

/// How the values of a sample's input are drawn.
struct Values {
  enum class Kind : std::uint8_t {
    normal,     ///< standard normal
    off_kinks,  ///< normal, but every value at least 0.1 away from 0 (relu and its like)
    distinct,   ///< all values differ by at least 0.05 (maxima)
    positive,   ///< uniform in [0.5, 1.5] (denominators, logarithms, variances)
    integer,    ///< uniform integers in [0, bound) (labels, u8 images)
  };
  Kind kind = Kind::normal;
  std::int64_t bound = 0;
};

struct SampleInput {
  TensorInfo info;  ///< floating ones with dtype f32; the sweep also runs the sample with f64 instead
  Values values = {};
  bool differentiable = true;  ///< check its gradient (floating inputs only)
};

/// One use of an operator: a contract and inputs, small enough for finite differences (tens to a few hundred
/// elements an input). Samples together should reach every attribute and every branch of the kernel.
struct Sample {
  std::string name;  ///< `stride_2_asymmetric_padding`
  /// Makes the contract for inputs of the given floating dtype (f32 or f64).
  std::function<ContractPtr(DType)> contract;
  std::vector<SampleInput> inputs;
  bool differentiable = true;         ///< compare gradients with finite differences
  bool twice_differentiable = false;  ///< also the gradient's gradient
};

struct OperatorType {
  std::string type;
  std::vector<Sample> samples;
};

/// The operator types, by name. No central list names them: every file of this folder defines
/// `void register_<file>(Registry&)`, and the build makes the function that calls them all.
class Registry {
 public:
  /// Adds a type with its samples, at least one; a second one of the same name is a bug.
  void add(std::string type, std::vector<Sample> samples);
  const std::vector<OperatorType>& types() const { return types_; }
  const OperatorType* find(std::string_view type) const;

 private:
  std::vector<OperatorType> types_;
};

/// Every operator type of the library.
Registry all_operators();

}  // namespace purine::ops
