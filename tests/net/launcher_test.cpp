#include "purine/net/launcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace purine::net {
namespace {

std::string launcher_of(const std::map<std::string, std::string>& variables) {
  const std::optional<Launcher> launcher = find_launcher([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
  return launcher ? fmt::format("{} {} of {}", launcher->name, launcher->rank, launcher->tasks) : "none";
}

TEST(LauncherTest, IsKnownByItsVariables) {
  EXPECT_EQ(launcher_of({}), "none");
  EXPECT_EQ(launcher_of({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}}), "mpirun 3 of 4");
  EXPECT_EQ(launcher_of({{"PMI_SIZE", "3"}, {"PMI_RANK", "1"}}), "mpiexec 1 of 3");
  EXPECT_EQ(launcher_of({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}}), "srun 1 of 2");
  EXPECT_EQ(launcher_of({{"SLURM_STEP_NUM_TASKS", "2"}, {"PMI_SIZE", "2"}, {"PMI_RANK", "1"}}),
            "srun 1 of 2");
  EXPECT_EQ(launcher_of({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}, {"PMIX_RANK", "0"}}),
            "srun 0 of 2");
  EXPECT_EQ(launcher_of({{"PMIX_RANK", "1"}}), "a launcher with PMIx 1 of 0");
}

TEST(LauncherTest, AJobScriptAloneStartsNoRanks) {
  EXPECT_EQ(launcher_of({{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "17"}}), "none");
}

TEST(LauncherTest, MpirunCountsWhereSrunStartedIt) {
  EXPECT_EQ(launcher_of({{"SLURM_STEP_NUM_TASKS", "1"},
                         {"SLURM_PROCID", "0"},
                         {"OMPI_COMM_WORLD_SIZE", "8"},
                         {"OMPI_COMM_WORLD_RANK", "5"}}),
            "mpirun 5 of 8");
}

TEST(LauncherTest, WhatIsNoNumberIsUnknown) {
  EXPECT_EQ(launcher_of({{"OMPI_COMM_WORLD_SIZE", "many"}}), "mpirun 0 of 0");
  EXPECT_EQ(launcher_of({{"OMPI_COMM_WORLD_SIZE", "-1"}}), "mpirun 0 of 0");
  EXPECT_EQ(launcher_of({{"OMPI_COMM_WORLD_SIZE", "2x"}}), "mpirun 0 of 0");
}

}  // namespace
}  // namespace purine::net
