#include "purine/train/placed_graph.h"

#include <gtest/gtest.h>

#include "purine/session/session.h"
#include "purine/train/evaluator.h"
#include "purine/train/network.h"
#include "tests/support/temporary_folder.h"
#include "tests/train/image_set.h"

namespace purine::train {
namespace {

class PlacedGraphTest : public testing::Test {
 protected:
  PlacedGraphTest() { test::write_idx_set(folder_ / "set"); }

  ParallelSetup setup(const std::string& scheme, std::int64_t seed = 1) {
    return parallel_setup(
        parse_job("[model]\nname = \"lenet\"\n[data]\nfolder = \"" + (folder_ / "set").string() +
                      "\"\nbatch = 4\n[train]\nseed = " + std::to_string(seed) + "\n[parallel]\n" + scheme,
                  "job.toml"));
  }
  static PlacedGraph training(const ParallelSetup& setup) {
    return {setup, [&](Graph& graph, Location device) {
              const Job& job = setup.loaded.job;
              const auto set = open_dataset(job, data::Subset::train);
              build_training(training_source(graph, job, set), job, 4, 6, device);
            }};
  }

  test::TemporaryFolder folder_;
};

TEST_F(PlacedGraphTest, VariablesAreSharedWhereTheirPiecesAreTheSame) {
  const PlacedGraph data = training(setup("devices = \"emu:0-1\"\n"));
  const PlacedGraph again = training(setup("devices = \"emu:2-3\"\n"));
  const PlacedGraph tensor = training(setup("devices = \"emu:0-1\"\nscheme = \"tensor\"\n"));
  EXPECT_TRUE(again.can_share_variables_of(data)) << "elsewhere, but in the same pieces";
  EXPECT_FALSE(tensor.can_share_variables_of(data));
  EXPECT_FALSE(data.can_share_variables_of(tensor));
}

TEST_F(PlacedGraphTest, AnEvaluatorCopiesWhatLiesOtherwise) {
  Runtime runtime({.workers = 2, .devices = parse_devices("emu:0-1")});
  const ParallelSetup tensor = setup("devices = \"emu:0-1\"\nscheme = \"tensor\"\n");
  PlacedGraph trained = training(tensor);
  Session session(runtime, trained.running(), {.seed = 1});
  session.run_steps(3);
  session.drain();
  const auto test_set = open_dataset(tensor.loaded.job, data::Subset::test);
  const Task task = find_task(tensor.loaded.job, *open_dataset(tensor.loaded.job, data::Subset::train));
  const Evaluator::Options options{&trained, session.shared_variables(), {}};

  Evaluator sharing(runtime, tensor, task, test_set, options);
  EXPECT_TRUE(sharing.shares_variables());
  // Its own variables begin with other values, by another seed.
  Evaluator copying(runtime, setup("devices = \"emu:0-1\"\nscheme = \"pipeline\"\n", 7), task, test_set,
                    options);
  EXPECT_FALSE(copying.shares_variables());
  EXPECT_NEAR(copying.run(3, 0)->loss, sharing.run(3, 0)->loss, 1e-5);
  session.run_steps(3);
  session.drain();
  EXPECT_NEAR(copying.run(6, 1)->loss, sharing.run(6, 1)->loss, 1e-5) << "copied anew";
}

}  // namespace
}  // namespace purine::train
