// LeNet, divided in each scheme over several ranks, against the same division in one process, and one device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "purine/models/lenet.h"
#include "purine/net/in_process_endpoint.h"
#include "purine/ops/loss.h"
#include "purine/optim/optimizers.h"
#include "purine/parallel/pipeline.h"
#include "purine/parallel/schemes.h"
#include "purine/session/session.h"
#include "tests/support/ranks.h"
#include "tests/support/sample_source.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

using parallel::Mesh;
using parallel::Partitioned;
using test::at_ranks;

constexpr std::int64_t dataset_size = 20;
constexpr std::int64_t batch_size = 8;  // three steps an epoch, the last one of 4 samples
constexpr std::int64_t epoch_count = 2;

/// Images and labels that follow from the number of the sample.
void register_samples(KernelRegistry& kernels) {
  kernels.add("test_samples", [](const BindContext& context) {
    const Piece part = context.as<test::SampleSource>().part();
    return make_kernel([part](const KernelCall& call) {
      constexpr std::int64_t steps = (dataset_size + batch_size - 1) / batch_size;
      constexpr std::int64_t pixels = 28 * 28;
      for (std::int64_t i = part.begin; i < part.end; ++i) {
        const std::int64_t sample = call.iteration % steps * batch_size + i;
        for (std::int64_t k = 0; k < pixels; ++k) {
          call.output<float>(0)[(i - part.begin) * pixels + k] =
              static_cast<float>(std::sin(static_cast<double>(sample * 7 + k * (1 + sample % 5))));
        }
        call.output<std::int64_t>(1)[i - part.begin] = sample % 10;
      }
    });
  });
}

struct LeNet {
  Graph graph;
  Tensor loss;

  LeNet() {
    const test::SampleSource::Samples images{{1, 28, 28}, DType::i64, dataset_size};
    const Operator samples =
        graph.add(std::make_shared<test::SampleSource>(images, batch_size), {}, "samples");
    loss = ops::softmax_cross_entropy(models::lenet(samples.output(0), 10), samples.output(1), "loss");
    graph.watch(loss);
    optim::momentum(loss, {.learning_rate = 0.005, .momentum = 0.9, .weight_decay = 5e-4});
  }
};

struct Result {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> variables;

  void take(Session& session, std::int32_t rank, Graph& graph) {
    for (const Variable variable : graph.variables()) {
      if (variable.location().rank != rank) continue;
      const std::span<const std::byte> bytes = session.variables().at(variable.path()).bytes();
      std::vector<float>& values = variables[variable.path()];
      values.resize(bytes.size() / sizeof(float));
      std::memcpy(values.data(), bytes.data(), bytes.size());
    }
  }
};

/// Trains the graph's part at a runtime's rank.
Result train(Runtime& runtime, Graph& graph, Tensor loss) {
  register_samples(runtime.cpu_kernels());
  Session session(runtime, graph);
  Result result;
  for (const Step& step : session.run({.epochs = epoch_count})) {
    if (step.has(loss)) result.losses.push_back(step.value(loss));
  }
  result.take(session, runtime.rank(), graph);
  return result;
}

using Scheme = std::function<Partitioned(Graph&, std::vector<Location>)>;

const std::map<std::string, Scheme>& schemes() {
  using Locations = std::vector<Location>;
  static const std::map<std::string, Scheme> all = {
      {"data", [](Graph& g, Locations l) { return parallel::data_parallel(g, Mesh(std::move(l))); }},
      {"data_ring",
       [](Graph& g, Locations l) {
         return parallel::data_parallel(g, Mesh(std::move(l)),
                                        {.partition = {.all_reduce = parallel::ring_all_reduce}});
       }},
      {"data_sharded",
       [](Graph& g, Locations l) {
         return parallel::data_parallel(g, Mesh(std::move(l)), {.update = parallel::UpdateAt::shards});
       }},
      {"data_central",
       [](Graph& g, Locations l) {
         return parallel::data_parallel(g, Mesh(std::move(l)), {.update = parallel::UpdateAt::one_each});
       }},
      {"tensor",
       [](Graph& g, Locations l) { return parallel::tensor_parallel(g, Mesh(std::move(l), "model")); }},
      {"hybrid", [](Graph& g, Locations l) { return parallel::hybrid(g, Mesh(std::move(l))); }},
      {"pipeline", [](Graph& g, Locations l) { return parallel::pipeline(g, Mesh(std::move(l), "stage")); }},
  };
  return all;
}

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const auto& [name, scheme] : schemes()) names.push_back(name);
  return names;
}

class LeNetRanksTest : public testing::TestWithParam<std::string> {
 protected:
  /// Runs the scheme over these locations with their ranks as threads, and in one process where the same
  /// devices have other numbers; holds one to the other and both to one device.
  void compare(int ranks, const std::vector<Location>& locations) const {
    const Scheme& scheme = schemes().at(GetParam());
    LeNet one;
    Runtime alone({.workers = 2});
    const Result expected = train(alone, one.graph, one.loss);
    ASSERT_EQ(expected.losses.size(), 6U);

    std::map<DeviceKind, std::int32_t> used;
    std::vector<Location> in_one_process;
    for (const Location& location : locations)
      in_one_process.push_back({0, location.kind, used[location.kind]++});
    LeNet together;
    Partitioned divided = scheme(together.graph, in_one_process);
    Runtime runtime({.workers = 2, .devices = in_one_process, .emulated = {.memory = memory_}});
    const Result same = train(runtime, divided.graph(), divided.at(together.loss));
    ASSERT_EQ(same.losses.size(), 6U);

    net::InProcessHub hub(ranks, {.shuffle_seed = 5});
    std::vector<Result> results(static_cast<std::size_t>(ranks));
    const auto errors = at_ranks(hub, ranks, [&](Endpoint& endpoint) {
      LeNet net;
      Partitioned parts = scheme(net.graph, locations);
      Runtime here(
          {.workers = 1, .devices = locations, .emulated = {.memory = memory_}, .endpoint = &endpoint});
      results[static_cast<std::size_t>(endpoint.rank())] = train(here, parts.graph(), parts.at(net.loss));
    });
    ASSERT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(ranks)));
    Result all;
    for (Result& result : results) {
      if (!result.losses.empty()) all.losses = result.losses;
      all.variables.merge(result.variables);
    }
    EXPECT_EQ(all.losses, same.losses);
    EXPECT_EQ(all.variables, same.variables);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(all.losses[i], expected.losses[i], 1e-6) << "step " << i;
  }

 private:
  const Watchdog watchdog_;
  static constexpr std::size_t memory_ = std::size_t{1} << 27U;
};

INSTANTIATE_TEST_SUITE_P(Schemes, LeNetRanksTest, testing::ValuesIn(scheme_names()),
                         [](const auto& test) { return test.param; });

TEST_P(LeNetRanksTest, TwoRanksEqualOneProcess) {
  compare(2, {{0, DeviceKind::cpu, 0}, {1, DeviceKind::cpu, 0}});
}

TEST_P(LeNetRanksTest, FourRanksEqualOneProcess) {
  compare(
      4,
      {{0, DeviceKind::cpu, 0}, {1, DeviceKind::cpu, 0}, {2, DeviceKind::cpu, 0}, {3, DeviceKind::cpu, 0}});
}

TEST_P(LeNetRanksTest, TwoRanksOfTwoAcceleratorsEachEqualOneProcess) {
  compare(
      2,
      {{0, DeviceKind::emu, 0}, {0, DeviceKind::emu, 1}, {1, DeviceKind::emu, 0}, {1, DeviceKind::emu, 1}});
}

}  // namespace
}  // namespace purine
