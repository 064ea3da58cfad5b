#include "purine/runtime/cpu_workers.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <set>

namespace purine {
namespace {

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  return CPU_COUNT(&set);
}

TEST(CpuWorkersTest, EachNumberRunsOnce) {
  for (const int count : {1, 2, 4, 16}) {
    std::vector<int> runs(static_cast<std::size_t>(count), 0);
    {
      CpuWorkers workers(count, true, [&](int worker) { ++runs[static_cast<std::size_t>(worker)]; });
    }
    EXPECT_EQ(runs, std::vector<int>(static_cast<std::size_t>(count), 1));
  }
}

TEST(CpuWorkersTest, AWorkerForEachCoreIsPinnedToIt) {
  const std::vector<int> cores = CpuWorkers::available_cores();
  ASSERT_EQ(static_cast<int>(cores.size()), allowed_cores());
  std::vector<int> seen(cores.size(), -1);
  std::vector<int> masks(cores.size(), 0);
  {
    CpuWorkers workers(static_cast<int>(cores.size()), true, [&](int worker) {
      masks[static_cast<std::size_t>(worker)] = allowed_cores();
      seen[static_cast<std::size_t>(worker)] = sched_getcpu();
    });
  }
  EXPECT_EQ(seen, cores);
  EXPECT_EQ(masks, std::vector<int>(cores.size(), 1));
}

TEST(CpuWorkersTest, MoreWorkersThanCoresAreNotPinned) {
  const int cores = allowed_cores();
  std::vector<int> masks(static_cast<std::size_t>(cores) + 1, 0);
  {
    CpuWorkers workers(cores + 1, true,
                       [&](int worker) { masks[static_cast<std::size_t>(worker)] = allowed_cores(); });
  }
  EXPECT_EQ(masks, std::vector<int>(static_cast<std::size_t>(cores) + 1, cores));
}

TEST(CpuWorkersTest, WorkersMayBeLeftToTheScheduler) {
  const int cores = allowed_cores();
  std::vector<int> masks(static_cast<std::size_t>(cores), 0);
  {
    CpuWorkers workers(cores, false,
                       [&](int worker) { masks[static_cast<std::size_t>(worker)] = allowed_cores(); });
  }
  EXPECT_EQ(masks, std::vector<int>(static_cast<std::size_t>(cores), cores));
}

}  // namespace
}  // namespace purine
