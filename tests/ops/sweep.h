// What the sweeps over the registry have in common: samples' inputs, tolerances, pieces.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "purine/core/random.h"
#include "purine/ops/registry.h"
#include "tests/support/array.h"
#include "tests/support/run_operator.h"

namespace purine::test {

inline const ops::Registry& registry() {
  static const ops::Registry operators = ops::all_operators();
  return operators;
}

/// Calls check(sample) for all samples of all types; what goes wrong names both.
template <typename Check>
void for_each_sample(const Check& check) {
  for (const ops::OperatorType& entry : registry().types()) {
    for (const ops::Sample& sample : entry.samples) {
      SCOPED_TRACE(entry.type + ", sample " + sample.name);
      try {
        check(sample);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
}

/// The infos of a sample's inputs where floating ones have this dtype.
inline std::vector<TensorInfo> sample_infos(const ops::Sample& sample, DType floating) {
  std::vector<TensorInfo> infos;
  for (const ops::SampleInput& input : sample.inputs) {
    TensorInfo info = input.info;
    if (is_floating(info.dtype)) info.dtype = floating;
    infos.push_back(info);
  }
  return infos;
}

/// Values drawn as the sample says, for tensors of these infos. They are rounded to f32 also where they are
/// f64, so that both dtypes compute with the same numbers.
inline std::vector<Array> draw_inputs(const ops::Sample& sample, std::span<const TensorInfo> infos) {
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const ops::Values values = sample.inputs[i].values;
    const Random random(17, i, 0);
    Array array(infos[i]);
    std::vector<std::int64_t> order(static_cast<std::size_t>(array.elements()));
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = static_cast<std::int64_t>(k);
    if (values.kind == ops::Values::Kind::distinct) {
      for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random.below(k, k)]);
    }
    for (std::int64_t k = 0; k < array.elements(); ++k) {
      const auto element = static_cast<std::uint64_t>(k);
      float value = 0;
      switch (values.kind) {
        case ops::Values::Kind::normal:
          value = random.normal(element);
          break;
        case ops::Values::Kind::off_kinks:
          value = random.normal(element);
          value += value < 0 ? -0.1F : 0.1F;
          break;
        case ops::Values::Kind::distinct:
          value = 0.06F * static_cast<float>(order[static_cast<std::size_t>(k)] - array.elements() / 2);
          break;
        case ops::Values::Kind::positive:
          value = 0.5F + random.uniform(element);
          break;
        case ops::Values::Kind::integer:
          value = static_cast<float>(random.below(element, static_cast<std::uint64_t>(values.bound)));
          break;
      }
      array.set(k, static_cast<double>(value));
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

/// How far results of one dtype may differ from exact ones. An output element is made of about `length`
/// terms, which the cost model says; each operation rounds by half an epsilon of what it makes, which is
/// within a small factor of the largest output (or of 1, the size of the inputs), and functions are good to a
/// few epsilons.
inline double tolerance(const Contract& contract, std::span<const TensorInfo> inputs, const Array& expected,
                        DType dtype) {
  const std::vector<TensorInfo> outputs = contract.infer(inputs);
  double elements = 0;
  for (const TensorInfo& output : outputs) elements += static_cast<double>(output.shape.elements());
  const double length = contract.cost(inputs, outputs).operations / std::max(elements, 1.0);
  double largest = 1;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    if (std::isfinite(expected.at(i))) largest = std::max(largest, std::abs(expected.at(i)));
  }
  const double epsilon = dtype == DType::f64 ? std::numeric_limits<double>::epsilon()
                                             : static_cast<double>(std::numeric_limits<float>::epsilon());
  return (16 + length) * epsilon * largest;
}

/// Floating elements within the tolerance, all others equal; NaN and infinity only where they are expected.
inline void expect_close(const Array& got, const Array& expected, double allowed, const std::string& what) {
  ASSERT_EQ(got.shape().text(), expected.shape().text()) << what;
  const bool exact = !is_floating(expected.dtype());
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double want = expected.at(i);
    const double have = got.at(i);
    const bool same = have == want || (std::isnan(have) && std::isnan(want));
    if (same || (!exact && std::abs(have - want) <= allowed)) continue;
    ADD_FAILURE() << what << ": element " << i << " of " << expected.info().text() << " is " << have
                  << ", expected " << want << " within " << (exact ? 0 : allowed);
    return;
  }
}

/// The inputs of one piece of an operator: [begin, end) of the rule's units.
inline std::vector<Array> piece_inputs(const SplitRule& rule, std::span<const Array> inputs,
                                       std::int64_t begin, std::int64_t end) {
  std::vector<Array> pieces;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const int dimension = rule.inputs[i];
    if (dimension == SplitRule::whole) {
      pieces.push_back(inputs[i]);
      continue;
    }
    const std::int64_t per_unit = inputs[i].shape()[dimension] / rule.units;
    pieces.push_back(inputs[i].slice(dimension, begin * per_unit, end * per_unit));
  }
  return pieces;
}

/// The infos of the inputs of the operator for `units` units instead of the rule's.
inline std::vector<TensorInfo> resized_infos(const SplitRule& rule, std::span<const TensorInfo> inputs,
                                             std::int64_t units) {
  std::vector<TensorInfo> resized(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const int dimension = rule.inputs[i];
    if (dimension == SplitRule::whole) continue;
    resized[i].shape.set(dimension, inputs[i].shape[dimension] / rule.units * units);
  }
  return resized;
}

}  // namespace purine::test
