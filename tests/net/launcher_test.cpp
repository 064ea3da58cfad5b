#include "purine/net/launcher.h"

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
  return launcher ? launcher->name + " " + std::to_string(launcher->tasks) : "none";
}

TEST(LauncherTest, IsKnownByItsVariables) {
  EXPECT_EQ(launcher_of({}), "none");
  EXPECT_EQ(launcher_of({{"OMPI_COMM_WORLD_SIZE", "4"}}), "mpirun 4");
  EXPECT_EQ(launcher_of({{"PMI_SIZE", "3"}, {"PMI_RANK", "1"}}), "mpiexec 3");
  EXPECT_EQ(launcher_of({{"SLURM_STEP_NUM_TASKS", "2"}}), "srun 2");
  EXPECT_EQ(launcher_of({{"SLURM_STEP_NUM_TASKS", "2"}, {"PMI_SIZE", "2"}}), "srun 2");
  EXPECT_EQ(launcher_of({{"SLURM_STEP_NUM_TASKS", "2"}, {"PMIX_RANK", "0"}}), "srun 2");
  EXPECT_EQ(launcher_of({{"PMIX_RANK", "0"}}), "a launcher with PMIx 0");
}

TEST(LauncherTest, AJobScriptAloneStartsNoRanks) {
  EXPECT_EQ(launcher_of({{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "17"}}), "none");
}

TEST(LauncherTest, MpirunCountsWhereSrunStartedIt) {
  EXPECT_EQ(launcher_of({{"SLURM_STEP_NUM_TASKS", "1"}, {"OMPI_COMM_WORLD_SIZE", "8"}}), "mpirun 8");
}

TEST(LauncherTest, WhatIsNoNumberIsUnknown) {
  EXPECT_EQ(launcher_of({{"OMPI_COMM_WORLD_SIZE", "many"}}), "mpirun 0");
  EXPECT_EQ(launcher_of({{"OMPI_COMM_WORLD_SIZE", "-1"}}), "mpirun 0");
  EXPECT_EQ(launcher_of({{"OMPI_COMM_WORLD_SIZE", "2x"}}), "mpirun 0");
}

}  // namespace
}  // namespace purine::net
