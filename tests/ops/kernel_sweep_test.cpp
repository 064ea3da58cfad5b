// What every operator's CPU kernel promises: it writes what was inferred and nothing else, f32 agrees with
// f64, and neither layouts, shared storage nor the order of parts change the result.
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "purine/backend/cpu/convolution.h"
#include "tests/ops/sweep.h"

namespace purine::test {
namespace {

/// Enough for element-wise kernels to have several parts.
constexpr std::int64_t many_elements = 140000;

/// A sample's contract and inputs, as they are or for a much larger batch.
struct Use {
  ContractPtr contract;
  std::vector<TensorInfo> infos;
};

Use use_of(const ops::Sample& sample, DType floating) {
  return {sample.contract(floating), sample_infos(sample, floating)};
}

/// The same operator with more units of its first split rule, where it has one.
std::optional<Use> enlarged(const ops::Sample& sample, DType floating) {
  const Use use = use_of(sample, floating);
  const std::vector<SplitRule> rules = use.contract->split_rules(use.infos);
  if (rules.empty() || rules[0].units == 0) return std::nullopt;
  std::int64_t elements = 1;
  for (const TensorInfo& info : use.infos) elements = std::max(elements, info.shape.elements());
  for (const TensorInfo& info : use.contract->infer(use.infos))
    elements = std::max(elements, info.shape.elements());
  const std::int64_t units = rules[0].units * (many_elements / elements + 1);
  return Use{use.contract->piece(rules[0], {0, units, units}, use.infos),
             resized_infos(rules[0], use.infos, units)};
}

bool has_flexible(const Use& use) {
  const LayoutRule rule = use.contract->layouts();
  const auto any = [](std::span<const TensorInfo> infos, std::uint32_t flexible) {
    const std::vector<Layout> layouts = layouts_of(infos, flexible, Layout::channels_last);
    return std::find(layouts.begin(), layouts.end(), Layout::channels_last) != layouts.end();
  };
  return any(use.infos, rule.inputs) || any(use.contract->infer(use.infos), rule.outputs);
}

/// Inputs of an enlarged use: the sample's values over and over.
std::vector<Array> repeat_inputs(const ops::Sample& sample, std::span<const TensorInfo> infos) {
  const std::vector<Array> small = draw_inputs(sample, sample_infos(sample, DType::f32));
  std::vector<Array> large;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    large.emplace_back(infos[i]);
    const std::size_t size = infos[i].bytes();
    for (std::size_t at = 0; at < size; at += small[i].info().bytes()) {
      std::memcpy(large[i].bytes() + at, small[i].bytes(), std::min(small[i].info().bytes(), size - at));
    }
  }
  return large;
}

void expect_equal(const std::vector<Array>& got, const std::vector<Array>& expected,
                  const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i] == expected[i]) << what << ": output " << i << " differs";
  }
}

TEST(KernelSweep, WritesWhatWasInferredAndAlwaysTheSame) {
  for_each_sample([](const ops::Sample& sample) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      SCOPED_TRACE(name_of(dtype));
      const Use use = use_of(sample, dtype);
      const std::vector<Array> inputs = draw_inputs(sample, use.infos);
      // A byte that is not written keeps the fill.
      const std::vector<Array> first = run_operator(use.contract, inputs);
      expect_equal(run_operator(use.contract, inputs, {.fill = 0}), first, "another fill");
      ASSERT_EQ(infos_of(first), use.contract->infer(use.infos));
    }
  });
}

TEST(KernelSweep, SinglePrecisionAgreesWithDouble) {
  for_each_sample([](const ops::Sample& sample) {
    const Use single = use_of(sample, DType::f32);
    const Use twice = use_of(sample, DType::f64);
    const std::vector<Array> got = run_operator(single.contract, draw_inputs(sample, single.infos));
    const std::vector<Array> expected = run_operator(twice.contract, draw_inputs(sample, twice.infos));
    for (std::size_t i = 0; i < got.size(); ++i) {
      expect_close(got[i], expected[i], tolerance(*single.contract, single.infos, expected[i], DType::f32),
                   "output " + std::to_string(i));
    }
  });
}

TEST(KernelSweep, LayoutsGiveTheSame) {
  for_each_sample([](const ops::Sample& sample) {
    const Use use = use_of(sample, DType::f32);
    if (!has_flexible(use)) return;
    const std::vector<Array> inputs = draw_inputs(sample, use.infos);
    const std::vector<Array> expected = run_operator(use.contract, inputs);
    const std::vector<Array> got = run_operator(use.contract, inputs, {.layout = Layout::channels_last});
    for (std::size_t i = 0; i < got.size(); ++i) {
      expect_close(got[i], expected[i], tolerance(*use.contract, use.infos, expected[i], DType::f32),
                   "output " + std::to_string(i));
    }
  });
}

TEST(KernelSweep, EveryAlgorithmOfAConvolutionAgreesWithDouble) {
  using cpu::ConvolutionAlgorithm;
  for (const auto algorithm :
       {ConvolutionAlgorithm::blocked, ConvolutionAlgorithm::winograd_2, ConvolutionAlgorithm::winograd_4}) {
    SCOPED_TRACE(cpu::name_of(algorithm));
    int computed = 0;
    KernelRegistry kernels;
    cpu::set_convolutions(kernels, [&](cpu::ConvolutionPass, const cpu::ConvolutionProblem& problem) {
      const bool can = cpu::can_compute(algorithm, problem);
      computed += can ? 1 : 0;
      return can ? algorithm : ConvolutionAlgorithm::direct;
    });
    for_each_sample([&](const ops::Sample& sample) {
      const Use single = use_of(sample, DType::f32);
      if (!kernels.has(single.contract->type())) return;
      const Use twice = use_of(sample, DType::f64);
      const std::vector<Array> got = run_operator(single.contract, draw_inputs(sample, single.infos),
                                                  {.layout = Layout::channels_last, .kernels = &kernels});
      const std::vector<Array> expected = run_operator(twice.contract, draw_inputs(sample, twice.infos));
      for (std::size_t i = 0; i < got.size(); ++i) {
        expect_close(got[i], expected[i], tolerance(*single.contract, single.infos, expected[i], DType::f32),
                     "output " + std::to_string(i));
      }
    });
    EXPECT_GE(computed, 3);
  }
}

TEST(KernelSweep, SharedStorageGivesTheSameBits) {
  for_each_sample([](const ops::Sample& sample) {
    const Use use = use_of(sample, DType::f32);
    const std::vector<Sharing> all = use.contract->sharing();
    if (all.empty()) return;
    const std::vector<Array> inputs = draw_inputs(sample, use.infos);
    for (const Layout layout : {Layout::plain, Layout::channels_last}) {
      const std::vector<Array> expected = run_operator(use.contract, inputs, {.layout = layout});
      expect_equal(run_operator(use.contract, inputs, {.layout = layout, .in_place = true}), expected,
                   "in place");
      // Where an output may lie in one of several inputs, each of them.
      for (int i = 0; i < static_cast<int>(all.size()); ++i) {
        expect_equal(
            run_operator(use.contract, inputs, {.layout = layout, .in_place = true, .only_sharing = i}),
            expected, "sharing " + std::to_string(i));
      }
    }
  });
}

TEST(KernelSweep, PartsInAnyOrderGiveTheSameBits) {
  std::set<std::string_view> in_parts;
  for_each_sample([&](const ops::Sample& sample) {
    const std::optional<Use> large = enlarged(sample, DType::f32);
    if (!large) return;
    const bool flexible = has_flexible(*large);
    for (const Layout layout : {Layout::plain, Layout::channels_last}) {
      if (layout == Layout::channels_last && !flexible) continue;
      const RunOptions options{.layout = layout};
      if (BoundOperator(large->contract, large->infos, options).parts() == 1) continue;
      in_parts.insert(large->contract->type());
      const std::vector<Array> inputs = repeat_inputs(sample, large->infos);
      const std::vector<Array> expected = run_operator(large->contract, inputs, options);
      const bool shares = !large->contract->sharing().empty();
      expect_equal(run_operator(large->contract, inputs,
                                {.layout = layout, .in_place = shares, .part_order = PartOrder::descending}),
                   expected, "parts in descending order");
      expect_equal(
          run_operator(large->contract, inputs, {.layout = layout, .part_order = PartOrder::shuffled}),
          expected, "parts in another order");
      expect_equal(run_operator(large->contract, inputs,
                                {.layout = layout, .part_order = PartOrder::shuffled, .keep_scratch = true}),
                   expected, "parts that find the scratch memory of others");
    }
  });
  // Most types have kernels in parts; that they were reached is part of the test.
  EXPECT_GT(in_parts.size(), registry().types().size() / 2);
}

}  // namespace
}  // namespace purine::test
