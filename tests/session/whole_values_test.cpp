#include "purine/session/whole_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "purine/nn/initializer.h"
#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/optim/optimizers.h"
#include "purine/parallel/schemes.h"
#include "purine/session/session.h"
#include "tests/session/two_layers.h"

namespace purine {
namespace {

using parallel::Mesh;
using parallel::Range;
using parallel::WholeVariable;

std::vector<std::int32_t> numbers(std::size_t count) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(WholeValuesTest, CopiesTheElementsOfAPiece) {
  const TensorInfo info{{3, 4, 2}, DType::i32};
  const std::vector<std::int32_t> whole = numbers(24);
  const auto piece_of = [&](std::vector<Range> ranges) {
    std::size_t count = 1;
    for (const Range& range : ranges) count *= static_cast<std::size_t>(range.size());
    std::vector<std::int32_t> piece(count, -1);
    copy_from_whole(info, ranges, std::as_bytes(std::span(whole)), std::as_writable_bytes(std::span(piece)));
    std::vector<std::int32_t> back(24, -1);
    copy_to_whole(info, ranges, std::as_bytes(std::span(piece)), std::as_writable_bytes(std::span(back)));
    for (const std::int32_t value : piece) EXPECT_EQ(back[static_cast<std::size_t>(value)], value);
    EXPECT_EQ(std::count(back.begin(), back.end(), -1), 24 - static_cast<std::int64_t>(count));
    return piece;
  };
  EXPECT_EQ(piece_of({{0, 3}, {0, 4}, {0, 2}}), whole);
  EXPECT_EQ(piece_of({{1, 2}, {0, 4}, {0, 2}}), (std::vector<std::int32_t>{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(piece_of({{0, 3}, {1, 3}, {0, 2}}),
            (std::vector<std::int32_t>{2, 3, 4, 5, 10, 11, 12, 13, 18, 19, 20, 21}));
  EXPECT_EQ(piece_of({{1, 3}, {2, 4}, {1, 2}}), (std::vector<std::int32_t>{13, 15, 21, 23}));
  EXPECT_TRUE(piece_of({{1, 1}, {0, 4}, {0, 2}}).empty());
}

TEST(WholeValuesTest, AScalarIsOnePiece) {
  const TensorInfo info{{}, DType::i32};
  const std::int32_t five = 5;
  std::int32_t copy = 0;
  copy_from_whole(info, {}, std::as_bytes(std::span(&five, 1)), std::as_writable_bytes(std::span(&copy, 1)));
  EXPECT_EQ(copy, 5);
}

TEST(WholeValuesTest, GathersEachDistinctPieceOnce) {
  // A 4 x 2 tensor over a mesh of two by two: halves of its rows, each at two locations.
  WholeVariable variable{"w", {{4, 2}, DType::i32}, {}};
  for (int i = 0; i < 4; ++i) {
    const std::int64_t half = i % 2;
    variable.pieces.push_back(
        {"@" + std::to_string(i) + "/w", {0, DeviceKind::emu, i}, {{2 * half, 2 * half + 2}, {0, 2}}});
  }
  EXPECT_EQ(variable.distinct(), (std::vector<std::size_t>{0, 1}));
  std::vector<std::string> asked;
  std::vector<std::int32_t> sent;
  const io::HostTensor tensor = gather(variable, [&](const WholeVariable::Piece& piece) {
    asked.push_back(piece.path);
    const std::int32_t first = asked.size() == 1 ? 0 : 4;
    sent = {first, first + 1, first + 2, first + 3};
    return std::as_bytes(std::span(sent));
  });
  EXPECT_EQ(asked, (std::vector<std::string>{"@0/w", "@1/w"}));
  EXPECT_EQ(tensor, io::HostTensor::of<std::int32_t>("w", {4, 2}, numbers(8)));
}

class WholeValuesOfSchemesTest : public testing::TestWithParam<int> {
 protected:
  static parallel::Partitioned divide(Graph& graph, int scheme) {
    const auto four = parse_devices("emu:0-3");
    if (scheme == 0)
      return parallel::data_parallel(graph, Mesh(four), {.update = parallel::UpdateAt::shards});
    if (scheme == 1)
      return parallel::data_parallel(graph, Mesh(four), {.update = parallel::UpdateAt::one_each});
    if (scheme == 2) return parallel::tensor_parallel(graph, Mesh(four, "model"));
    return parallel::hybrid(graph, Mesh("data=2,model=2", four), {.layers_axis = "model"});
  }
};

TEST_P(WholeValuesOfSchemesTest, GoOutAndInAgain) {
  Runtime runtime({.workers = 2, .devices = parse_devices("emu:0-3")});
  test::TwoLayers net;
  parallel::Partitioned parts = divide(net.graph, GetParam());
  const std::vector<WholeVariable> variables = parallel::whole_variables(net.graph, parts);
  Session session(runtime, parts.graph());
  test::feed(session, parts.at(net.image), parts.at(net.label));
  session.run_steps(3);
  session.drain();
  EXPECT_EQ(find_unequal_replica(variables, session.variables()), std::nullopt);
  const std::vector<io::HostTensor> values = whole_values(variables, session.variables());

  // One device computes the same.
  test::TwoLayers other;
  Session alone(runtime, other.graph);
  test::feed(alone, other.image, other.label);
  alone.run_steps(3);
  alone.drain();
  const std::vector<io::HostTensor> expected = alone.variables().values();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i].name, expected[i].name);
    ASSERT_EQ(values[i].info, expected[i].info);
    if (values[i].info.dtype != DType::f32) continue;
    for (std::size_t k = 0; k < values[i].values<float>().size(); ++k) {
      EXPECT_NEAR(values[i].values<float>()[k], expected[i].values<float>()[k], 3e-6) << values[i].name;
    }
  }

  // Set into another session, all pieces and replicas have what they had.
  test::TwoLayers again;
  parallel::Partitioned more = divide(again.graph, GetParam());
  Session next(runtime, more.graph(), {.seed = 9});
  for (const WholeVariable& variable : variables) {
    set_whole_value(variable, io::find_tensor(values, variable.path)->data, next.variables());
  }
  EXPECT_EQ(next.variables().values(), session.variables().values());
}

INSTANTIATE_TEST_SUITE_P(Schemes, WholeValuesOfSchemesTest, testing::Range(0, 4));

TEST(WholeValuesTest, AReplicaThatDiffersIsFound) {
  Runtime runtime({.workers = 1});
  Graph graph;
  const TensorInfo info{{3}, DType::f32};
  for (const char* name : {"@0/w", "@1/w", "@2/w"}) graph.variable(name, info, nn::constant(2)(info));
  Variables values;
  values.create(graph, runtime.cpu_kernels(), 1);
  const std::vector<Range> first = {{0, 3}};
  const std::vector<Range> second = {{3, 6}};
  const WholeVariable variable{
      "w", {{6}, DType::f32}, {{"@0/w", {}, first}, {"@1/w", {}, second}, {"@2/w", {}, second}}};
  EXPECT_EQ(find_unequal_replica(std::span(&variable, 1), values), std::nullopt);
  values.at("@2/w").bytes()[5] ^= std::byte{1};
  EXPECT_EQ(find_unequal_replica(std::span(&variable, 1), values), "@2/w");
}

}  // namespace
}  // namespace purine
