#include "purine/train/parallel_section.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "purine/models/models.h"
#include "purine/session/runtime.h"
#include "tests/support/error_text.h"

namespace purine::train {
namespace {

using test::error_text;

LoadedJob job_with(const std::string& section, const std::vector<std::string>& set_beside = {}) {
  std::vector<JobSetting> settings;
  for (const std::string& assignment : set_beside) settings.push_back({assignment, "--set " + assignment});
  return parse_job("[model]\nname = \"lenet\"\n[data]\nfolder = \"set\"\n[parallel]\n" + section, "job.toml",
                   settings);
}

ParallelSetup setup_of(const std::string& section, const std::vector<std::string>& set_beside = {}) {
  return parallel_setup(job_with(section, set_beside));
}

std::string section_mistake(const std::string& section) {
  return error_text([&] { setup_of(section); });
}

TEST(ParallelSectionTest, OneDeviceIsSingle) {
  const ParallelSetup setup =
      parallel_setup(parse_job("[model]\nname = \"lenet\"\n[data]\nfolder = \"d\"\n", "j"));
  EXPECT_EQ(setup.scheme->name, "single");
  EXPECT_FALSE(setup.is_divided());
  EXPECT_EQ(setup.devices(), std::vector<Location>{Location{}});
  EXPECT_EQ(setup.text(), "cpu:0");
}

TEST(ParallelSectionTest, SeveralDevicesAreDataParallelUnlessTheJobSaysOtherwise) {
  const ParallelSetup setup = setup_of("devices = \"emu:0-2\"\n");
  EXPECT_EQ(setup.scheme->name, "data");
  EXPECT_EQ(setup.mesh.text(), "data=3");
  EXPECT_EQ(setup.text(), "data parallelism over emu:0-2 (data=3)");
  EXPECT_EQ(setup_of("devices = \"emu:0-2\"\nscheme = \"tensor\"\n").mesh.text(), "model=3");
  EXPECT_EQ(setup_of("devices = \"emu:0-2\"\nscheme = \"pipeline\"\n").mesh.text(), "stage=3");
  EXPECT_EQ(setup_of("devices = \"emu:0\"\nscheme = \"tensor\"\n").text(), "emu:0") << "nothing to divide";
}

TEST(ParallelSectionTest, AMeshHasTheAxesThatItsSchemeKnows) {
  const ParallelSetup setup =
      setup_of("devices = \"emu:0-3\"\nscheme = \"hybrid\"\nmesh = \"data=2,model=2\"\nshares = [3, 1]\n");
  EXPECT_EQ(setup.mesh.part(setup.mesh.axis("data"), 8, 0), (parallel::Range{0, 6}));
  EXPECT_EQ(
      section_mistake("devices = \"emu:0-3\"\nscheme = \"data\"\nmesh = \"data=2,model=2\"\n"),
      "[job] job.toml:8: parallel.mesh has an axis model, which scheme = \"data\" does not know; hint: its "
      "axis is data");
  EXPECT_EQ(
      section_mistake("devices = \"emu:0-3\"\nscheme = \"tensor\"\nmesh = \"data=2,modell=2\"\n"),
      "[job] job.toml:8: parallel.mesh has an axis modell, which scheme = \"tensor\" does not know; hint: "
      "its axes are model and, where wanted, data");
  EXPECT_EQ(section_mistake("devices = \"emu:0-3\"\nscheme = \"tensor\"\nmesh = \"data=4\"\n"),
            "[job] job.toml:8: parallel.mesh has no axis model, along which scheme = \"tensor\" divides");
  EXPECT_EQ(
      section_mistake("devices = \"emu:0-3\"\nmesh = \"data=2,data=2\"\n"),
      "[job] job.toml:7: parallel.mesh the axis data is named twice; hint: left empty, it has all devices "
      "along the axis data");
  EXPECT_EQ(section_mistake("devices = \"emu:0-3\"\nmesh = \"four\"\n"),
            "[job] job.toml:7: parallel.mesh 'four' is no axis of a mesh; hint: write names and sizes: "
            "data=2,model=4");
  EXPECT_EQ(section_mistake("devices = \"emu:0-3\"\nmesh = \"data=2\"\n"),
            "[job] job.toml:7: parallel.mesh data=2 needs 2 locations, 4 are given; hint: left empty, it has "
            "all devices along the axis data");
}

TEST(ParallelSectionTest, DevicesThatMakeNoSense) {
  EXPECT_EQ(section_mistake("devices = \"emu\"\n"),
            "[job] job.toml:6: parallel.devices 'emu' is no list of devices; hint: write KIND:INDEX or "
            "KIND:FIRST-LAST, separated by commas: cpu:0,cpu:1 or emu:0-7");
  EXPECT_EQ(
      section_mistake("devices = \"emu:0-1\"\nscheme = \"single\"\n"),
      "[job] job.toml:7: parallel.scheme is \"single\", and there are 2 devices; hint: name one device, or "
      "take another scheme");
  EXPECT_EQ(section_mistake("scheme = \"sharded\"\n"),
            "[job] job.toml:6: parallel.scheme is \"sharded\", and no devices are named; hint: set "
            "parallel.devices, "
            "give --devices, or start several processes with mpirun");
}

TEST(ParallelSectionTest, RangesOfDevicesThatAreNone) {
  EXPECT_EQ(section_mistake("devices = \"emu:3-0\"\n"),
            "[job] job.toml:6: parallel.devices 'emu:3-0' has a range that doesn't count up; hint: write "
            "KIND:INDEX or "
            "KIND:FIRST-LAST, separated by commas: cpu:0,cpu:1 or emu:0-7");
  EXPECT_EQ(section_mistake("devices = \"emu:0-4096\"\n"),
            "[job] job.toml:6: parallel.devices 'emu:0-4096' has a range of more than 4096 devices");
}

TEST(ParallelSectionTest, DevicesWithoutRanksAreThoseOfEachRank) {
  const ParallelSetup none = parallel_setup(job_with(""), 2);
  EXPECT_EQ(none.devices(), (std::vector<Location>{{0, DeviceKind::cpu, 0}, {1, DeviceKind::cpu, 0}}));
  EXPECT_EQ(none.text(), "data parallelism over cpu:0 at each of 2 ranks (data=2)");
  const ParallelSetup grid =
      parallel_setup(job_with("devices = \"emu:0-1\"\nscheme = \"hybrid\"\nmesh = \"data=2,model=2\"\n"), 2);
  EXPECT_EQ(devices_text(grid.devices()), "emu:0-1,1/emu:0-1");
  EXPECT_EQ(local_devices_text(grid.devices(), 1), "emu:0-1");
  EXPECT_EQ(parallel_setup(job_with("scheme = \"sharded\"\n"), 3).mesh.text(), "data=3");
}

TEST(ParallelSectionTest, DevicesWithRanksFitTheRun) {
  const LoadedJob job = job_with("devices = \"0/cpu:0,1/emu:0-1\"\n");
  EXPECT_EQ(parallel_setup(job, 2).text(), "data parallelism over cpu:0,1/emu:0-1 (data=3)");
  EXPECT_EQ(local_devices_text(parallel_setup(job, 2).devices(), 1), "emu:0-1");
  EXPECT_EQ(parallel_setup(job).mesh.text(), "data=3") << "to look at, without the processes";
  EXPECT_EQ(
      error_text([&] { parallel_setup(job, 1); }),
      "[job] job.toml:6: parallel.devices names 1/emu:0, and the run has 1 process; hint: start one process "
      "a rank, as with mpirun -n, or name devices without ranks");
  EXPECT_EQ(
      error_text([&] { parallel_setup(job, 3); }),
      "[job] job.toml:6: parallel.devices names no device of rank 2, and the run has 3 processes; hint: name "
      "devices without ranks to have them at every rank");
}

TEST(ParallelSectionTest, KeysOfAnotherSchemeAreMistakes) {
  EXPECT_EQ(
      section_mistake("devices = \"emu:0-1\"\nscheme = \"sharded\"\nupdate = \"one_each\"\n"),
      "[job] job.toml:8: parallel.update does not go with scheme = \"sharded\"; hint: data is the scheme "
      "that takes it");
  EXPECT_EQ(
      section_mistake("devices = \"emu:0-1\"\noutput_layers = [\"lenet/fc1\"]\n"),
      "[job] job.toml:7: parallel.output_layers does not go with scheme = \"data\"; hint: tensor, hybrid "
      "take it");
  EXPECT_EQ(section_mistake("shares = [2, 1]\n"),
            "[job] job.toml:6: parallel.shares does not go with scheme = \"single\"; hint: data, sharded, "
            "tensor, hybrid, pipeline take it");
  EXPECT_EQ(
      section_mistake("all_reduce = \"ring\"\n"),
      "[job] job.toml:6: parallel.all_reduce does not go with scheme = \"single\"; hint: one device divides "
      "nothing");
  EXPECT_EQ(section_mistake("all_reduce = \"star\"\n"),
            "[job] job.toml:6: parallel.all_reduce must be one of auto, central, sharded, ring, tree; got "
            "\"star\"");
}

TEST(ParallelSectionTest, SharesFitTheDataAxis) {
  EXPECT_EQ(section_mistake("devices = \"emu:0-1\"\nshares = [1, 2, 3]\n"),
            "[job] job.toml:7: parallel.shares has 3 numbers, and the axis data 2 devices");
  EXPECT_EQ(section_mistake("devices = \"emu:0-1\"\nshares = [1, 1.5]\n"),
            "[job] job.toml:7: parallel.shares must be whole numbers, got 1.5");
  EXPECT_EQ(section_mistake("devices = \"emu:0-1\"\nscheme = \"tensor\"\nshares = [1, 2]\n"),
            "[job] job.toml:8: parallel.shares needs an axis data; the mesh is model=2");
}

TEST(ParallelSectionTest, SharesOfTheWorkFitTheStages) {
  const std::string pipeline = "devices = \"emu:0-3\"\nscheme = \"pipeline\"\n";
  EXPECT_EQ(section_mistake(pipeline + "stage_shares = [1, 2]\n"),
            "[job] job.toml:8: parallel.stage_shares has 2 numbers, and the axis stage 4 devices");
  EXPECT_EQ(section_mistake(pipeline + "mesh = \"data=2,stage=2\"\nstage_shares = [1, 2, 3, 4]\n"),
            "[job] job.toml:9: parallel.stage_shares has 4 numbers, and the axis stage 2 devices");
  EXPECT_EQ(
      section_mistake("devices = \"emu:0-1\"\nstage_shares = [1, 2]\n"),
      "[job] job.toml:7: parallel.stage_shares does not go with scheme = \"data\"; hint: pipeline is the "
      "scheme that takes it");
}

TEST(ParallelSectionTest, BucketsAreInKibibytes) {
  const std::string two = "devices = \"emu:0-1\"\n";
  EXPECT_EQ(setup_of(two).partition_options().bucket_bytes, parallel::PartitionOptions().bucket_bytes);
  EXPECT_EQ(setup_of(two + "bucket_kib = 16\n").partition_options().bucket_bytes, 16384U);
  EXPECT_EQ(setup_of(two + "bucket_kib = 0\n").partition_options().bucket_bytes, 0U);
}

TEST(ParallelSectionTest, GradientsAreSentAsTheyAreUnlessTheJobSaysOtherwise) {
  const std::string two = "devices = \"emu:0-1\"\n";
  EXPECT_EQ(setup_of(two).partition_options().gradient_wire, std::nullopt);
  EXPECT_EQ(
      setup_of(two + "gradient_format = \"f32\"\nall_reduce = \"ring\"\n").partition_options().gradient_wire,
      std::nullopt);
  EXPECT_EQ(setup_of(two + "gradient_format = \"f16\"\n").partition_options().gradient_wire,
            ops::NarrowFormat::f16);
  EXPECT_EQ(
      setup_of(two + "gradient_format = \"bf16\"\nscheme = \"sharded\"\n").partition_options().gradient_wire,
      ops::NarrowFormat::bf16);
  EXPECT_EQ(section_mistake(two + "gradient_format = \"f16\"\nall_reduce = \"ring\"\n"),
            "[job] job.toml:7: parallel.gradient_format is \"f16\", and all_reduce = \"ring\"; hint: narrow "
            "gradients are summed in the cheapest way: leave all_reduce out");
  EXPECT_EQ(
      section_mistake("gradient_format = \"f16\"\n"),
      "[job] job.toml:6: parallel.gradient_format does not go with scheme = \"single\"; hint: one device "
      "divides nothing");
}

TEST(ParallelSectionTest, OneDeviceInPlaceOfSeveralDropsTheRest) {
  const LoadedJob grid = job_with("devices = \"emu:0-3\"\nscheme = \"tensor\"\nmesh = \"data=2,model=2\"\n");
  EXPECT_EQ(parallel_setup(with_devices(grid, "cpu:0", "--devices cpu:0")).text(), "cpu:0");
  EXPECT_EQ(parallel_setup(with_devices(grid, "cpu:0-3", "--devices cpu:0-3")).text(),
            "tensor parallelism over cpu:0-3 (data=2,model=2)");
  EXPECT_EQ(
      error_text([&] { with_devices(grid, "cpu:0-1", "--devices cpu:0-1"); }),
      "[job] job.toml:8: parallel.mesh data=2,model=2 needs 4 locations, 2 are given; hint: left empty, it "
      "has all devices along the axis model");
}

TEST(ParallelSectionTest, ASchemeBesideTheFileLeavesOutWhatIsForAnother) {
  const std::string tensor =
      "devices = \"emu:0-3\"\nscheme = \"tensor\"\nmesh = \"data=2,model=2\"\nshares = [2, 1]\n"
      "output_layers = [\"lenet/fc1\"]\nall_reduce = \"ring\"\nsynchronized_batch_normalization = true\n";
  const LoadedJob data = job_with(tensor, {"parallel.scheme=data"});
  EXPECT_EQ(parallel_setup(data).text(), "data parallelism over emu:0-3 (data=4)");
  EXPECT_EQ(data.job.parallel, (Job::Parallel{.scheme = "data",
                                              .devices = "emu:0-3",
                                              .all_reduce = "ring",
                                              .synchronized_batch_normalization = true}));
  EXPECT_FALSE(data.origins.contains("parallel.mesh"));
  const LoadedJob pipeline = job_with(tensor, {"parallel.scheme=pipeline"});
  EXPECT_EQ(pipeline.job.parallel,
            (Job::Parallel{.scheme = "pipeline", .devices = "emu:0-3", .all_reduce = "ring"}));
  EXPECT_EQ(setup_of(tensor, {"parallel.scheme=single", "parallel.devices=cpu:1"}).loaded.job.parallel,
            (Job::Parallel{.scheme = "single", .devices = "cpu:1"}));
  EXPECT_EQ(setup_of(tensor, {"parallel.scheme=auto"}).text(), "data parallelism over emu:0-3 (data=4)");
}

TEST(ParallelSectionTest, ASchemeBesideTheFileKeepsWhatItTakes) {
  const std::string grid =
      "devices = \"emu:0-3\"\nscheme = \"tensor\"\nmesh = \"data=2,model=2\"\nshares = [2, 1]\n";
  const ParallelSetup hybrid = setup_of(grid, {"parallel.scheme=hybrid"});
  EXPECT_EQ(hybrid.mesh.text(), "data=2,model=2");
  EXPECT_EQ(hybrid.loaded.job.parallel.shares, (std::vector<double>{2, 1}));
  // What is set beside the file as well is meant.
  EXPECT_EQ(error_text([&] {
              setup_of(grid, {"parallel.scheme=data", "parallel.mesh=data=2,model=2"});
            }),
            "[job] --set parallel.mesh=data=2,model=2: parallel.mesh has an axis model, which scheme = "
            "\"data\" does "
            "not know; hint: its axis is data");
  EXPECT_EQ(error_text([&] {
              setup_of(grid, {"parallel.scheme=pipeline", "parallel.shares=1,2"});
            }),
            "[job] --set parallel.shares=1,2: parallel.shares needs an axis data; the mesh is stage=4");
  // Without a scheme beside it, the file's own mistakes are told.
  EXPECT_EQ(
      error_text([&] { setup_of(grid + "micro_batches = 3\n", {"parallel.devices=cpu:0-3"}); }),
      "[job] job.toml:10: parallel.micro_batches does not go with scheme = \"tensor\"; hint: pipeline is the "
      "scheme that takes it");
}

TEST(ParallelSectionTest, WhatTheNetworkShowsIsAMistakeOfTheJob) {
  Graph graph;
  const Tensor image = graph.input("image", TensorInfo{Shape{4, 1, 28, 28}, DType::f32});
  graph.watch(models::lenet(image, 10));
  EXPECT_EQ(error_text([&] { setup_of("devices = \"emu:0-15\"\nscheme = \"pipeline\"\n").divide(graph); }),
            "[job] job.toml:7: parallel.scheme is \"pipeline\", and 8 operators can't be cut into 16 "
            "stages; hint: take "
            "fewer stages, or divide the samples along a second axis: data=2,stage=4");
  EXPECT_EQ(
      error_text([&] {
        setup_of(
            "devices = \"emu:0-1\"\nscheme = \"tensor\"\noutput_layers = [\"lenet/fc1\", \"lenet/fc2\"]\n"
            "input_layers = [\"lenet/fc2\"]\n")
            .divide(graph);
      }),
      "[job] job.toml:9: parallel.input_layers names 'lenet/fc2', which parallel.output_layers names too; "
      "hint: a "
      "layer is divided in one of the two ways");
}

TEST(ParallelSectionTest, ALayerIsFoundByTheEndOfItsPath) {
  Graph graph;
  const Tensor image = graph.input("image", TensorInfo{Shape{4, 1, 28, 28}, DType::f32});
  graph.watch(models::lenet(image, 10));
  const std::string tensor = "devices = \"emu:0-1\"\nscheme = \"tensor\"\n";
  EXPECT_EQ(
      error_text([&] { setup_of(tensor + "output_layers = [\"conv2\"]\n").divide(graph); }),
      "[job] job.toml:8: parallel.output_layers names 'conv2': there is no layer 'conv2' with a weight; "
      "hint: did you mean 'lenet/conv2'?");
  EXPECT_EQ(error_text([&] { setup_of(tensor + "input_layers = [\"dense\"]\n").divide(graph); }),
            "[job] job.toml:8: parallel.input_layers names 'dense': there is no layer 'dense' with a weight");
  EXPECT_EQ(error_text([&] { setup_of(tensor + "input_layers = [\"\"]\n").divide(graph); }),
            "[job] job.toml:8: parallel.input_layers names '': there is no layer '' with a weight");
}

TEST(ParallelSectionTest, DevicesReadAsTheyAreWritten) {
  for (const char* text : {"cpu:0", "emu:0-3", "cpu:0,emu:1", "emu:3,emu:1-2", "1/cpu:0,1/emu:0-1"}) {
    EXPECT_EQ(devices_text(parse_devices(text)), text);
  }
}

TEST(ParallelSectionTest, EverySchemeIsAChoiceAndDivides) {
  for (const Scheme& scheme : all_schemes()) {
    const ParallelSetup setup =
        setup_of("devices = \"emu:0" + std::string(scheme.name == "single" ? "" : "-1") + "\"\nscheme = \"" +
                 std::string(scheme.name) + "\"\n");
    EXPECT_EQ(setup.scheme, &scheme);
    EXPECT_EQ(scheme.divide == nullptr, scheme.name == "single");
  }
}

}  // namespace
}  // namespace purine::train
