#include "purine/parallel/collectives.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "purine/core/random.h"
#include "tests/support/evaluate.h"

namespace purine::parallel {
namespace {

using test::Array;
using test::Evaluator;

/// Inputs of one shape at n locations.
struct Parts {
  Graph graph;
  std::vector<Tensor> tensors;

  Parts(int count, const Shape& shape) {
    for (int i = 0; i < count; ++i) {
      const auto place = graph.at({0, DeviceKind::emu, i});
      tensors.push_back(graph.input("x" + std::to_string(i), {shape, DType::f32}));
    }
  }

  /// The value of element k at location i: exact in any order of summation.
  static double value(std::int64_t k, std::size_t i) {
    return static_cast<double>(k * 7 % 11) * std::pow(2.0, static_cast<double>(i));
  }

  std::vector<Array> run(const std::vector<Tensor>& results) {
    verify(graph);
    Evaluator evaluator(graph);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      Array values(tensors[i].info());
      for (std::int64_t k = 0; k < values.elements(); ++k) values.set(k, value(k, i));
      evaluator.set(tensors[i], std::move(values));
    }
    return evaluator.compute(results);
  }

  Array expected() const {
    Array sum(tensors.front().info());
    for (std::int64_t k = 0; k < sum.elements(); ++k) {
      double total = 0;
      for (std::size_t i = 0; i < tensors.size(); ++i) total += value(k, i);
      sum.set(k, total);
    }
    return sum;
  }

  /// Bytes that a location sends, and receives.
  std::pair<std::size_t, std::size_t> traffic(Location location) {
    std::pair<std::size_t, std::size_t> bytes;
    for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
      const Operator op = graph.op(i);
      if (op.type() != "copy") continue;
      if (op.input(0).location() == location) bytes.first += op.output().info().bytes();
      if (op.location() == location) bytes.second += op.output().info().bytes();
    }
    return bytes;
  }
};

struct NamedAllReduce {
  std::string name;
  AllReduce all_reduce;
};

class AllReduceTest : public testing::TestWithParam<NamedAllReduce> {};

TEST_P(AllReduceTest, GivesTheSumAtEveryLocation) {
  for (const int count : {2, 3, 4, 5, 8}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3}, Shape{4, 7}, Shape{2, 3, 5, 1}}) {
      for (const int number : {0, 4}) {
        SCOPED_TRACE(std::to_string(count) + " of " + shape.text());
        Parts parts(count, shape);
        const std::vector<Tensor> sums = GetParam().all_reduce(parts.tensors, number);
        ASSERT_EQ(sums.size(), parts.tensors.size());
        for (std::size_t i = 0; i < sums.size(); ++i) {
          EXPECT_EQ(sums[i].location(), parts.tensors[i].location());
        }
        for (const Array& sum : parts.run(sums)) EXPECT_EQ(sum, parts.expected());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compositions, AllReduceTest,
                         testing::Values(NamedAllReduce{"central", central_all_reduce},
                                         NamedAllReduce{"sharded", sharded_all_reduce},
                                         NamedAllReduce{"ring", ring_all_reduce},
                                         NamedAllReduce{"tree", tree_all_reduce},
                                         NamedAllReduce{"by_cost", all_reduce_by_cost()},
                                         NamedAllReduce{"chunks", in_chunks(ring_all_reduce, 16)}),
                         [](const auto& test) { return test.param.name; });

struct NarrowCase {
  const char* name;
  Composition composition;
  ops::NarrowFormat format;

  friend std::ostream& operator<<(std::ostream& out, const NarrowCase& test) { return out << test.name; }
};

class NarrowAllReduceTest : public testing::TestWithParam<NarrowCase> {};

TEST_P(NarrowAllReduceTest, IsOffByRoundingOnTheWayAlone) {
  const auto [name, composition, format] = GetParam();
  const double u = format == ops::NarrowFormat::f16 ? 0x1p-11 : 0x1p-8;
  const Random random(5, 1, 0);
  for (const int count : {2, 3, 5}) {
    for (const Shape& shape : {Shape{3}, Shape{20, 17}}) {
      SCOPED_TRACE(std::to_string(count) + " of " + shape.text());
      Parts parts(count, shape);
      std::vector<Array> values;
      for (int i = 0; i < count; ++i) {
        values.emplace_back(parts.tensors[static_cast<std::size_t>(i)].info());
        for (std::int64_t k = 0; k < values.back().elements(); ++k) {
          const auto draw = static_cast<std::uint64_t>(i * 1000 + k);
          values.back().set(k, static_cast<float>(random.uniform(draw) * 4 - 2));
        }
      }
      const std::vector<Tensor> sums = narrow_all_reduce(composition, format)(parts.tensors, 1);
      verify(parts.graph);
      Evaluator evaluator(parts.graph);
      for (int i = 0; i < count; ++i) {
        evaluator.set(parts.tensors[static_cast<std::size_t>(i)], values[static_cast<std::size_t>(i)]);
      }
      const std::vector<Array> results = evaluator.compute(sums);
      for (std::size_t i = 1; i < results.size(); ++i) EXPECT_EQ(results[i], results[0]);
      bool differs = false;
      for (std::int64_t k = 0; k < results[0].elements(); ++k) {
        double sum = 0;
        double size = 0;
        for (const Array& value : values) {
          sum += value.at(k);
          size += std::abs(value.at(k));
        }
        // Sums that travel on are rounded once for each location; the others once for each part. What is
        // summed in f32, and numbers below 2^-14, add the last term.
        const double hops = composition == Composition::ring || composition == Composition::tree ? count : 1;
        const double before = hops * u * size * (1 + u * count);
        const double bound = before + u * (std::abs(sum) + before) + size * count * 0x1p-23 + count * 0x1p-25;
        EXPECT_LE(std::abs(results[0].at(k) - sum), bound);
        differs = differs || results[0].at(k) != static_cast<float>(sum);
      }
      EXPECT_TRUE(differs);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compositions, NarrowAllReduceTest,
                         testing::Values(NarrowCase{"central", Composition::central, ops::NarrowFormat::f16},
                                         NarrowCase{"sharded", Composition::sharded, ops::NarrowFormat::f16},
                                         NarrowCase{"ring", Composition::ring, ops::NarrowFormat::f16},
                                         NarrowCase{"tree", Composition::tree, ops::NarrowFormat::f16},
                                         NarrowCase{"sharded_bf16", Composition::sharded,
                                                    ops::NarrowFormat::bf16},
                                         NarrowCase{"tree_bf16", Composition::tree, ops::NarrowFormat::bf16}),
                         [](const auto& test) { return test.param.name; });

TEST(AllReduceTrafficTest, IsHalfOfItWhereNumbersAreNarrow) {
  for (const Composition composition :
       {Composition::central, Composition::sharded, Composition::ring, Composition::tree}) {
    Parts parts(4, {12});
    narrow_all_reduce(composition, ops::NarrowFormat::f16)(parts.tensors, 1);
    std::size_t bytes = 0;
    for (int i = 0; i < 4; ++i) bytes += parts.traffic({0, DeviceKind::emu, i}).first;
    EXPECT_EQ(bytes, 2 * 3 * 24U);  // 48 bytes as they are
  }
}

TEST(AllReduceTrafficTest, IsWhatEachCompositionPromises) {
  const Shape shape{12};  // 48 bytes at 4 locations
  const auto traffic = [&](const AllReduce& all_reduce, int location) {
    Parts parts(4, shape);
    all_reduce(parts.tensors, 1);
    return parts.traffic({0, DeviceKind::emu, location});
  };
  using Bytes = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(traffic(central_all_reduce, 1), (Bytes{144, 144}));
  EXPECT_EQ(traffic(central_all_reduce, 0), (Bytes{48, 48}));
  for (int location = 0; location < 4; ++location) {
    EXPECT_EQ(traffic(sharded_all_reduce, location), (Bytes{72, 72}));
    EXPECT_EQ(traffic(ring_all_reduce, location), (Bytes{72, 72}));
  }
  EXPECT_EQ(traffic(tree_all_reduce, 1), (Bytes{96, 96}));
  EXPECT_EQ(traffic(tree_all_reduce, 2), (Bytes{48, 48}));
}

TEST(AllReduceTrafficTest, OfARingIsWithNeighboursAlone) {
  Parts parts(5, {10});
  ring_all_reduce(parts.tensors, 0);
  for (std::uint32_t i = 0; i < parts.graph.operator_count(); ++i) {
    const Operator op = parts.graph.op(i);
    if (op.type() != "copy") continue;
    EXPECT_EQ((op.input(0).location().index + 1) % 5, op.location().index);
  }
}

TEST(CheapestAllReduceTest, FollowsSizeAndNumber) {
  const Link link{.latency = 50e-6, .overhead = 5e-6, .bytes_per_second = 1e9};
  EXPECT_EQ(cheapest_all_reduce(100, 2, link), Composition::central);
  EXPECT_EQ(cheapest_all_reduce(100, 4, link), Composition::central);
  EXPECT_EQ(cheapest_all_reduce(4e6, 4, link), Composition::sharded);
  EXPECT_EQ(cheapest_all_reduce(4e6, 64, link), Composition::sharded);
  EXPECT_EQ(cheapest_all_reduce(100, 1024, link), Composition::tree);
  EXPECT_EQ(cheapest_all_reduce(4e6, 1024, link), Composition::tree);
}

TEST(InChunksTest, EachIsReducedByItself) {
  Parts parts(2, {150});  // 600 bytes
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> numbers;
  const auto central = [&](std::span<const Tensor> chunk, std::int64_t number) {
    sizes.push_back(chunk.front().shape().elements());
    numbers.push_back(number);
    return central_all_reduce(chunk, number);
  };
  const std::vector<Tensor> sums = in_chunks(central, 256)(parts.tensors, 5);
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{50, 50, 50}));
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{5, 6, 7}));
  for (const Array& sum : parts.run(sums)) EXPECT_EQ(sum, parts.expected());
}

TEST(InChunksTest, CutsNothingThatIsSmallEnough) {
  Parts parts(2, {4});
  in_chunks(central_all_reduce, 16)(parts.tensors, 0);
  for (std::uint32_t i = 0; i < parts.graph.operator_count(); ++i) {
    EXPECT_NE(parts.graph.op(i).type(), "slice");
  }
}

TEST(BroadcastTest, ReachesAllInAsManyRoundsAsDoublingTakes) {
  Parts parts(9, {2});
  std::vector<Location> locations;
  for (const Tensor tensor : parts.tensors) locations.push_back(tensor.location());
  const std::vector<Tensor> reached = broadcast(parts.tensors[3], locations);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    EXPECT_EQ(reached[i].location(), locations[i]);
    int hops = 0;
    for (Tensor x = reached[i]; x.has_producer(); x = x.producer().input(0)) ++hops;
    EXPECT_LE(hops, 4);
  }
  for (const Array& value : parts.run(reached)) EXPECT_EQ(value.at(1), Parts::value(1, 3));
}

TEST(BroadcastTest, FromAllInTurnEachSendsEquallyOften) {
  Parts parts(12, {2});
  std::vector<Location> locations;
  for (const Tensor tensor : parts.tensors) locations.push_back(tensor.location());
  std::map<Location, int> sent;
  for (const Tensor source : parts.tensors) {
    for (const Tensor x : broadcast(source, locations)) {
      if (x.has_producer()) ++sent[x.producer().input(0).location()];
    }
  }
  for (const Location location : locations) EXPECT_EQ(sent[location], 11);
}

}  // namespace
}  // namespace purine::parallel
