// Compares what a kernel computes in f32, in every layout and order of parts, with its f64 result.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "purine/core/random.h"
#include "purine/graph/contract.h"
#include "tests/support/run_operator.h"

namespace purine::test {

/// Standard normal values; `stream` makes one array differ from another.
inline Array normal_array(const Shape& shape, std::uint64_t stream, DType dtype = DType::f64) {
  const Random random(11, stream, 0);
  Array array({shape, dtype});
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    array.set(i, static_cast<double>(random.normal(static_cast<std::uint64_t>(i))));
  }
  return array;
}

/// Those that f32 holds exactly: what f64 is given is what f32 is given.
inline Array f32_values(const Shape& shape, std::uint64_t stream) {
  return normal_array(shape, stream).as(DType::f32).as(DType::f64);
}

/// Expects that two arrays differ by no more than `tolerance` times the greatest absolute value expected.
inline void expect_close(const Array& actual, const Array& expected, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(actual.shape().text(), expected.shape().text()) << what;
  double greatest = 0;
  double worst = 0;
  std::int64_t where = 0;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    greatest = std::max(greatest, std::abs(expected.at(i)));
    const double difference = std::abs(actual.at(i) - expected.at(i));
    if (!(difference <= worst)) {
      worst = difference;
      where = i;
    }
  }
  EXPECT_LE(worst, tolerance * greatest)
      << what << ": element " << where << " is " << actual.at(where) << ", expected " << expected.at(where);
}

struct Comparison {
  double tolerance = 2e-6;  ///< of the f32 results, as a part of the greatest value
  int least_parts = 1;      ///< in f32 and each layout
};

/// Runs an operator in f64 and plain layout, and expects the same in f32 in both layouts, with the same bits
/// whatever the order of the parts. Inputs that are not floating stay as they are.
inline void compare_kernels(const ContractPtr& contract, const std::vector<Array>& inputs,
                            const Comparison& comparison = {}) {
  const std::string name = std::string(contract->type()) + " " + contract->attributes();
  const std::vector<Array> expected = run_operator(contract, inputs);
  std::vector<Array> single;
  for (const Array& input : inputs) {
    single.push_back(is_floating(input.dtype()) ? input.as(DType::f32) : input);
  }
  for (const Layout layout : {Layout::plain, Layout::channels_last}) {
    const std::string where = name + (layout == Layout::plain ? " f32 plain" : " f32 channels_last");
    BoundOperator bound(contract, infos_of(single), {.layout = layout});
    EXPECT_GE(bound.parts(), comparison.least_parts) << where;
    const std::vector<Array> results = bound.run(single);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expect_close(results[i], expected[i], comparison.tolerance, where + " output " + std::to_string(i));
    }
    for (const PartOrder order : {PartOrder::descending, PartOrder::shuffled}) {
      const std::vector<Array> others =
          run_operator(contract, single, {.layout = layout, .part_order = order});
      for (std::size_t i = 0; i < results.size(); ++i) {
        EXPECT_TRUE(others[i] == results[i]) << where << ": other bits in another order of parts";
      }
    }
    // The same kernel again: nothing is left over from the first execution.
    EXPECT_TRUE(bound.run(single) == results) << where;
  }
}

}  // namespace purine::test
