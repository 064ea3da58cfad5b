#include "purine/session/session.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/ops/relu.h"
#include "purine/optim/optimizers.h"
#include "purine/parallel/pipeline.h"
#include "purine/parallel/schemes.h"
#include "tests/support/sample_source.h"

namespace purine::parallel {
namespace {

constexpr std::int64_t dataset_size = 5;

/// Samples of 6 numbers and a label each: sample i of the epoch's order has numbers that follow from i alone.
void register_samples(KernelRegistry& kernels, std::int64_t batch) {
  kernels.add("test_samples", [batch](const BindContext& context) {
    const Piece part = context.as<test::SampleSource>().part();
    return make_kernel([part, batch](const KernelCall& call) {
      const std::int64_t steps = (dataset_size + batch - 1) / batch;
      for (std::int64_t i = part.begin; i < part.end; ++i) {
        const std::int64_t sample = call.iteration % steps * batch + i;
        for (std::int64_t k = 0; k < 6; ++k) {
          call.output<float>(0)[(i - part.begin) * 6 + k] =
              static_cast<float>((sample * 7 + k * 5) % 13) / 6 - 1;
        }
        call.output<std::int32_t>(1)[i - part.begin] = static_cast<std::int32_t>(sample % 4);
      }
    });
  });
}

struct SampledNetwork {
  Graph graph;
  Tensor loss;

  explicit SampledNetwork(std::int64_t batch) {
    const test::SampleSource::Samples samples{{6}, DType::i32, dataset_size};
    const Operator source = graph.add(std::make_shared<test::SampleSource>(samples, batch), {}, "samples");
    const Tensor hidden =
        nn::dropout(ops::relu(nn::linear(source.output(0), 8, {}, "fc1")), 0.25, nn::Mode::training);
    loss = ops::softmax_cross_entropy(nn::linear(hidden, 4, {}, "fc2"), source.output(1), "loss");
    optim::momentum(loss, {.learning_rate = 0.1});
  }
};

struct Result {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> variables;
};

Result run(Graph& graph, Tensor loss, std::int64_t batch, int workers, std::int64_t epochs) {
  Runtime runtime({.workers = workers,
                   .devices = parse_devices("cpu:0-1,emu:0-3"),
                   .emulated = {.memory = std::size_t{1} << 22U}});
  register_samples(runtime.cpu_kernels(), batch);
  Session session(runtime, graph);
  Result result;
  for (const Step& step : session.run({.epochs = epochs})) result.losses.push_back(step.value(loss));
  for (const Variable variable : graph.variables()) {
    const std::span<const std::byte> bytes = session.variables().at(variable.path()).bytes();
    std::vector<float>& values = result.variables[variable.path()];
    values.resize(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  return result;
}

class ParallelSessionTest : public testing::TestWithParam<const char*> {};

TEST_P(ParallelSessionTest, FiveSamplesInBatchesOfTwoEqualOneDeviceForAnyNumberOfWorkers) {
  SampledNetwork one(2);
  const Result expected = run(one.graph, one.loss, 2, 2, 3);
  ASSERT_EQ(expected.losses.size(), 9U);  // 2, 2 and 1 samples, three times
  const Mesh mesh(parse_devices(GetParam()));
  for (const UpdateAt update : {UpdateAt::everywhere, UpdateAt::shards, UpdateAt::one_each}) {
    SampledNetwork net(2);
    Partitioned parts = data_parallel(net.graph, mesh, {.update = update});
    Result first;
    for (const int workers : {2, 4, 7}) {
      const Result got = run(parts.graph(), parts.at(net.loss), 2, workers, 3);
      ASSERT_EQ(got.losses.size(), expected.losses.size());
      for (std::size_t i = 0; i < got.losses.size(); ++i) {
        EXPECT_NEAR(got.losses[i], expected.losses[i], 1e-6) << "step " << i;
      }
      for (const char* path : {"fc1/weight", "fc1/bias", "fc2/weight", "fc2/bias"}) {
        const std::vector<float>& left = expected.variables.at(path);
        const std::vector<float>& right = got.variables.at(path);
        ASSERT_EQ(left.size(), right.size());
        for (std::size_t i = 0; i < left.size(); ++i) EXPECT_NEAR(left[i], right[i], 2e-6) << path;
        EXPECT_EQ(got.variables.at(std::string("@1/") + path), right) << path;
      }
      if (first.losses.empty()) first = got;
      EXPECT_EQ(got.losses, first.losses) << workers << " workers";
      EXPECT_EQ(got.variables, first.variables) << workers << " workers";
    }
  }
}

TEST_P(ParallelSessionTest, HybridGivesTheSameBitsForAnyNumberOfWorkers) {
  SampledNetwork one(5);
  const Result expected = run(one.graph, one.loss, 5, 1 + 1, 4);
  SampledNetwork net(5);
  Partitioned parts = hybrid(net.graph, Mesh(parse_devices(GetParam())));
  Result first;
  for (const int workers : {2, 3, 8}) {
    const Result got = run(parts.graph(), parts.at(net.loss), 5, workers, 4);
    ASSERT_EQ(got.losses.size(), expected.losses.size());
    for (std::size_t i = 0; i < got.losses.size(); ++i) EXPECT_NEAR(got.losses[i], expected.losses[i], 1e-6);
    if (first.losses.empty()) first = got;
    EXPECT_EQ(got.losses, first.losses);
    EXPECT_EQ(got.variables, first.variables);
  }
}

TEST_P(ParallelSessionTest, PipelinesEqualOneDeviceForAnyNumberOfWorkersAndShortBatchesToo) {
  SampledNetwork one(4);
  const Result expected = run(one.graph, one.loss, 4, 2, 3);
  ASSERT_EQ(expected.losses.size(), 6U);  // 4 samples and 1, three times
  const Mesh mesh(parse_devices(GetParam()), "stage");
  SampledNetwork net(4);
  Partitioned parts = pipeline(net.graph, mesh, {.micro_batches = 3});
  Result first;
  for (const int workers : {2, 3, 8}) {
    const Result got = run(parts.graph(), parts.at(net.loss), 4, workers, 3);
    ASSERT_EQ(got.losses.size(), expected.losses.size());
    for (std::size_t i = 0; i < got.losses.size(); ++i) {
      EXPECT_NEAR(got.losses[i], expected.losses[i], 1e-6) << "step " << i;
    }
    for (const auto& [path, left] : expected.variables) {
      const std::vector<float>& right = got.variables.at(path);
      ASSERT_EQ(left.size(), right.size());
      for (std::size_t i = 0; i < left.size(); ++i) EXPECT_NEAR(left[i], right[i], 2e-6) << path;
    }
    if (first.losses.empty()) first = got;
    EXPECT_EQ(got.losses, first.losses) << workers << " workers";
    EXPECT_EQ(got.variables, first.variables) << workers << " workers";
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ParallelSessionTest,
                         testing::Values("cpu:0-1", "emu:0-1", "emu:0-2", "cpu:0,emu:0-1"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

TEST(ParallelSessionVariablesTest, AnEvaluationGraphForOneDeviceSharesTheVariables) {
  Runtime runtime({.workers = 2, .devices = parse_devices("cpu:0-1")});
  register_samples(runtime.cpu_kernels(), 5);
  SampledNetwork net(5);
  Partitioned parts = data_parallel(net.graph, Mesh{"cpu:0", "cpu:1"});
  Session session(runtime, parts.graph());
  session.run_steps(3);
  SampledNetwork other(5);
  Session evaluation(runtime, other.graph, {.variables = session.shared_variables()});
  evaluation.set_iteration(session.iteration());
  double alone = 0;
  for (const Step& step : evaluation.run({.steps = 1})) alone = step.value(other.loss);
  double parallel = 0;
  Session again(runtime, parts.graph());
  for (const Step& step : again.run({.steps = 4})) parallel = step.value(parts.at(net.loss));
  EXPECT_NEAR(alone, parallel, 1e-6);
}

}  // namespace
}  // namespace purine::parallel
