#include "purine/session/variables.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "purine/core/random.h"
#include "purine/ops/random.h"
#include "purine/session/runtime.h"

namespace purine {
namespace {

/// Large enough for several threads, and more than a part each.
TEST(VariablesTest, LargeOnesHoldTheRandomNumbersOfTheirElements) {
  constexpr std::uint64_t seed = 5;
  const std::vector<std::string> names = {"first", "second", "third"};
  const TensorInfo info{{1200, 1001}, DType::f32};
  Graph graph;
  for (const std::string& name : names) graph.variable(name, info, ops::make_random_normal(info, 0, 1));
  const Runtime runtime({.workers = 1});
  Variables variables;
  variables.create(graph, runtime.cpu_kernels(), seed);
  EXPECT_EQ(variables.entries().size(), names.size());
  for (const std::string& name : names) {
    const Random random(seed, hash_text(name), 0);
    std::vector<float> expected;
    for (std::uint64_t block = 0; expected.size() < 1200 * 1001; ++block) {
      for (const float value : random.normals(block)) expected.push_back(value);
    }
    expected.resize(1200 * 1001);
    const std::span<const std::byte> bytes = variables.at(name).bytes();
    ASSERT_EQ(bytes.size(), expected.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0) << name;
  }
}

TEST(VariablesTest, LargeBuffersAreZero) {
  const AlignedBuffer buffer((std::size_t{200} << 20U) + 3);
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
  std::size_t set = 0;
  for (std::size_t i = 0; i < buffer.size(); ++i) set += buffer.data()[i] != std::byte{0} ? 1 : 0;
  EXPECT_EQ(set, 0U);
}

}  // namespace
}  // namespace purine
