// What an operator's contract says of its inputs, in short.
#pragma once

#include <string>
#include <vector>

#include "purine/graph/contract.h"
#include "tests/support/error_text.h"

namespace purine::test {

inline TensorInfo f32(Shape shape) {
  return {shape, DType::f32};
}

/// The error with which a contract refuses inputs; accepting them fails the test.
inline std::string inference_error(const Contract& contract, const std::vector<TensorInfo>& inputs) {
  return error_text([&] { contract.infer(inputs); });
}

}  // namespace purine::test
