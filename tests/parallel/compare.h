// Runs a graph for one location and what it was divided into, and compares.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "purine/core/random.h"
#include "purine/graph/graph.h"
#include "purine/parallel/partition.h"
#include "tests/support/evaluate.h"

namespace purine::test {

/// Values of an input that depend on nothing but its path and the seed: normal, or integers below `bound`.
inline Array input_values(Tensor input, std::int64_t bound, std::uint64_t seed = 7) {
  const Random random(seed, hash_text(input.path()), 0);
  std::vector<double> values;
  for (std::int64_t i = 0; i < input.shape().elements(); ++i) {
    const double uniform = random.uniform(static_cast<std::uint64_t>(i));
    values.push_back(is_floating(input.dtype()) ? 2 * uniform - 1
                                                : std::floor(uniform * static_cast<double>(bound)));
  }
  return {input.info(), values};
}

/// A tensor put together from its pieces; replicas must be equal in every bit.
inline Array assemble(Evaluator& evaluator, const parallel::Partitioned& parts, Tensor tensor) {
  Array whole(tensor.info());
  std::map<std::string, Array> seen;  // by ranges
  const Shape& shape = tensor.shape();
  const auto strides = shape.strides();
  std::vector<bool> covered(static_cast<std::size_t>(shape.elements()), false);
  for (const parallel::Partitioned::Piece& piece : parts.pieces(tensor)) {
    const Array value = evaluator.compute(piece.tensor);
    std::string key;
    std::vector<std::int64_t> extents;
    for (const parallel::Range range : piece.ranges) {
      key += std::to_string(range.begin) + "-" + std::to_string(range.end) + " ";
      extents.push_back(range.size());
    }
    EXPECT_EQ(value.shape().text(), Shape(extents).text()) << tensor.path();
    const auto [entry, first] = seen.emplace(key, value);
    EXPECT_TRUE(entry->second == value) << "replicas of " << tensor.path() << " differ";
    if (!first) continue;
    const auto piece_strides = value.shape().strides();
    for (std::int64_t i = 0; i < value.elements(); ++i) {
      std::int64_t index = 0;
      for (int d = 0; d < shape.rank(); ++d) {
        const auto k = static_cast<std::size_t>(d);
        index += (i / piece_strides[k] % value.shape()[d] + piece.ranges[k].begin) * strides[k];
      }
      whole.set(index, value.at(i));
      covered[static_cast<std::size_t>(index)] = true;
    }
  }
  EXPECT_TRUE(std::all_of(covered.begin(), covered.end(), [](bool c) { return c; })) << tensor.path();
  return whole;
}

inline double largest_difference(const Array& a, const Array& b) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    largest = std::max(largest, std::abs(a.at(i) - b.at(i)));
  }
  return largest;
}

/// Runs both for some steps on the same inputs (integer ones are below `bound`) and compares what is watched
/// in each step and all variables after the last.
inline void expect_same(Graph& one, parallel::Partitioned& many, int steps, double tolerance,
                        std::int64_t bound = 10) {
  verify(many.graph());
  Evaluator left(one);
  Evaluator right(many.graph());
  std::vector<Tensor> watched = one.watched();
  std::vector<Tensor> watched_parts;
  for (const Tensor tensor : watched) watched_parts.push_back(many.at(tensor));
  for (int step = 0; step < steps; ++step) {
    for (const Tensor input : one.inputs()) {
      const Array values = input_values(input, bound, static_cast<std::uint64_t>(step));
      left.set(input, values);
      right.set(many.at(input), values);
    }
    const std::vector<Array> expected = left.step(watched);
    const std::vector<Array> got = right.step(watched_parts);
    for (std::size_t i = 0; i < watched.size(); ++i) {
      ASSERT_EQ(got[i].info().text(), expected[i].info().text());
      EXPECT_LE(largest_difference(got[i], expected[i]), tolerance)
          << watched[i].path() << " in step " << step;
    }
  }
  for (const Variable variable : one.variables()) {
    const Array expected = left.compute(variable);
    EXPECT_LE(largest_difference(assemble(right, many, variable), expected), tolerance) << variable.path();
  }
}

}  // namespace purine::test
