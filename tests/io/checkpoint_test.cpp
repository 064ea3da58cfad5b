#include "purine/io/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "purine/core/version.h"
#include "purine/io/file.h"
#include "purine/io/safetensors.h"
#include "tests/support/child_process.h"
#include "tests/support/error_text.h"
#include "tests/support/plain_file.h"
#include "tests/support/temporary_folder.h"

namespace purine::io {
namespace {

using test::error_text;
using test::TemporaryFolder;
using test::write_plain_file;

Checkpoint checkpoint_at(std::int64_t iteration) {
  const std::vector<float> weight{0.5F, static_cast<float>(iteration), -0.0F};
  const std::vector<double> moment{1e-300};
  Checkpoint checkpoint;
  checkpoint.manifest.iteration = iteration;
  checkpoint.manifest.epoch = 2;
  checkpoint.manifest.position = 640;
  checkpoint.manifest.seed = std::numeric_limits<std::uint64_t>::max();
  checkpoint.manifest.graph_hash = 0x0123456789abcdefU;
  checkpoint.manifest.job = "[model]\nname = \"lenet\"\n";
  checkpoint.manifest.extra = {{"note", "an \"extra\""}};
  checkpoint.tensors = {HostTensor::of<float>("net/weight", {3}, weight),
                        HostTensor::of<double>("net/moment", {}, moment)};
  return checkpoint;
}

std::vector<std::int64_t> iterations_in(const std::filesystem::path& folder) {
  std::vector<std::int64_t> iterations;
  for (const CheckpointFile& file : list_checkpoints(folder)) iterations.push_back(file.iteration);
  return iterations;
}

void damage(const std::filesystem::path& path) {
  std::string content = read_file(path);
  content[content.size() - 2] = static_cast<char>(content[content.size() - 2] ^ 1);
  write_plain_file(path, content);
}

TEST(CheckpointTest, ReadsBackAllThatWasSaved) {
  const TemporaryFolder folder;
  const Checkpoint saved = checkpoint_at(1234);
  const std::filesystem::path path = save_checkpoint(folder / "run/checkpoints", saved);
  EXPECT_EQ(path, folder / "run/checkpoints/step-00001234.safetensors");

  const Checkpoint loaded = load_checkpoint(path);
  Manifest expected = saved.manifest;
  expected.purine_version = build_id();
  EXPECT_EQ(loaded.manifest, expected);
  EXPECT_EQ(load_manifest(path), expected);
  ASSERT_EQ(loaded.tensors.size(), 2U);
  for (const HostTensor& tensor : saved.tensors) {
    const HostTensor* got = find_tensor(loaded.tensors, tensor.name);
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(*got, tensor);
  }
}

TEST(CheckpointTest, EqualStateGivesEqualBytes) {
  const TemporaryFolder folder;
  Checkpoint checkpoint = checkpoint_at(7);
  const std::string first = read_file(save_checkpoint(folder / "a", checkpoint));
  std::swap(checkpoint.tensors[0], checkpoint.tensors[1]);
  EXPECT_EQ(read_file(save_checkpoint(folder / "b", checkpoint)), first);
  EXPECT_EQ(read_file(save_checkpoint(folder / "c", load_checkpoint(folder / "a/step-00000007.safetensors"))),
            first);
  checkpoint.manifest.position += 1;
  EXPECT_NE(read_file(save_checkpoint(folder / "d", checkpoint)), first);
}

TEST(CheckpointTest, KeepsTheLastAndTheBest) {
  const TemporaryFolder folder;
  const std::vector<std::optional<double>> scores{
      0.1, 0.9, 0.3, std::nullopt, 0.9, 0.2, std::numeric_limits<double>::quiet_NaN()};
  for (std::size_t i = 0; i < scores.size(); ++i) {
    Checkpoint checkpoint = checkpoint_at(static_cast<std::int64_t>(10 * i));
    checkpoint.manifest.score = scores[i];
    save_checkpoint(folder / "last", checkpoint, {.last = 2});
    save_checkpoint(folder / "best", checkpoint, {.last = 1, .best = true});
    save_checkpoint(folder / "all", checkpoint, {.last = 0});
  }
  EXPECT_EQ(iterations_in(folder / "last"), (std::vector<std::int64_t>{50, 60}));
  EXPECT_EQ(iterations_in(folder / "best"), (std::vector<std::int64_t>{40, 60}));
  EXPECT_EQ(iterations_in(folder / "all").size(), scores.size());
}

TEST(CheckpointTest, ListsByIterationAndIgnoresOtherFiles) {
  const TemporaryFolder folder;
  for (const std::int64_t iteration : {99'999'999, 100'000'000, 5}) {
    save_checkpoint(folder.path(), checkpoint_at(iteration), {.last = 0});
  }
  for (const char* name : {"step-5.safetensors", "step-000000005.safetensors",
                           "step-00000006.safetensors.old", "step--0000001.safetensors", "step-.safetensors",
                           "notes.txt", "step-99999999999999999999.safetensors"}) {
    write_plain_file(folder / name, "x");
  }
  EXPECT_EQ(iterations_in(folder.path()), (std::vector<std::int64_t>{5, 99'999'999, 100'000'000}));
  EXPECT_EQ(latest_checkpoint(folder.path())->path, folder / "step-100000000.safetensors");
  EXPECT_TRUE(list_checkpoints(folder / "missing").empty());
  EXPECT_FALSE(latest_checkpoint(folder / "missing").has_value());
}

TEST(CheckpointTest, LaterOnesOfAnAbandonedRunAreDiscardedOnlyWhenAsked) {
  const TemporaryFolder folder;
  for (const std::int64_t iteration : {10, 20, 30, 40}) {
    save_checkpoint(folder.path(), checkpoint_at(iteration), {.last = 0});
  }
  save_checkpoint(folder.path(), checkpoint_at(25), {.last = 1});
  EXPECT_EQ(iterations_in(folder.path()), (std::vector<std::int64_t>{25, 30, 40}));
  EXPECT_EQ(discard_checkpoints_after(folder.path(), 25), 2U);
  EXPECT_EQ(iterations_in(folder.path()), (std::vector<std::int64_t>{25}));
  EXPECT_EQ(load_latest_checkpoint(folder.path()).checkpoint.manifest.iteration, 25);
}

TEST(CheckpointTest, RefusesADamagedLatestAndNamesTheNewestWholeOne) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string() + "/step-000000";
  EXPECT_EQ(error_text([&] { load_latest_checkpoint(folder.path()); }),
            "[checkpoint] " + folder.path().string() + ": there is no checkpoint in this folder");
  for (const std::int64_t iteration : {10, 20, 30}) {
    save_checkpoint(folder.path(), checkpoint_at(iteration), {.last = 0});
  }
  EXPECT_EQ(load_latest_checkpoint(folder.path()).path, path + "30.safetensors");

  const std::string first_part = path + "30.safetensors: is damaged: its content gives crc32c:";
  damage(path + "30.safetensors");
  std::string text = error_text([&] { load_latest_checkpoint(folder.path()); });
  EXPECT_EQ(text.find("[checkpoint] " + first_part), 0U) << text;
  EXPECT_TRUE(text.ends_with(
      "; hint: " + path + "20.safetensors is whole: move the damaged file away to go on from iteration 20"))
      << text;
  EXPECT_EQ(load_checkpoint(path + "20.safetensors").manifest.iteration, 20);

  damage(path + "20.safetensors");
  text = error_text([&] { load_latest_checkpoint(folder.path()); });
  EXPECT_NE(text.find("; hint: " + path + "20.safetensors cannot be used either (is damaged: "),
            std::string::npos)
      << text;
  EXPECT_TRUE(
      text.ends_with(path + "10.safetensors is whole: move the damaged file away to go on from iteration 10"))
      << text;

  damage(path + "10.safetensors");
  text = error_text([&] { load_latest_checkpoint(folder.path()); });
  EXPECT_TRUE(text.ends_with("; no older checkpoint of this folder is whole")) << text;
}

TEST(CheckpointTest, RefusesWhatIsNoCheckpoint) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.safetensors";
  const std::string start = "[checkpoint] " + path + ": ";
  const auto error_for = [&](const Metadata& metadata) {
    save_safetensors(path, {}, metadata);
    return error_text([&] { load_checkpoint(path); });
  };
  EXPECT_EQ(error_for({}),
            start +
                "has no purine.manifest, so it is not a checkpoint; hint: a plain safetensors file gives "
                "weights, but a run cannot go on from it");
  EXPECT_EQ(error_for({{"purine.manifest", R"({"format":2,"purine":"9.0.0"})"}, {"purine.checksum", "x"}}),
            start + "was written by purine 9.0.0 in format 2; this is purine " + std::string(build_id()) +
                ", which reads up to 1; hint: use that version, or a newer one");
  EXPECT_EQ(error_for({{"purine.manifest", "{}"}, {"purine.checksum", "x"}}),
            start + "the manifest cannot be read: key 'format' not found");
  EXPECT_EQ(error_for({{"purine.manifest", "{"}, {"purine.checksum", "x"}}),
            start + "the manifest is not JSON (line 1, column 1)");
}

TEST(CheckpointTest, RefusesToSaveWhatIsWrong) {
  const TemporaryFolder folder;
  Checkpoint checkpoint = checkpoint_at(-1);
  EXPECT_EQ(error_text([&] { save_checkpoint(folder.path(), checkpoint); }),
            "[checkpoint] " + folder.path().string() + ": iteration -1 is negative");
  checkpoint = checkpoint_at(1);
  EXPECT_EQ(error_text([&] { save_checkpoint(folder.path(), checkpoint, {.last = -1}); }),
            "[checkpoint] " + folder.path().string() + ": -1 checkpoints cannot be kept; hint: 0 keeps all");
  checkpoint.manifest.job = "\xff";
  EXPECT_EQ(error_text([&] { save_checkpoint(folder.path(), checkpoint); })
                .find("[checkpoint] " + (folder / "step-00000001.safetensors").string() +
                      ": the manifest cannot be written: "),
            0U);
  EXPECT_TRUE(list_checkpoints(folder.path()).empty());
}

TEST(CheckpointTest, EveryCutAndEveryChangedByteIsRefused) {
  const TemporaryFolder folder;
  const std::string whole = read_file(save_checkpoint(folder.path(), checkpoint_at(3)));
  const std::string path = folder / "a";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_plain_file(path, whole.substr(0, length));
    EXPECT_NE(error_text([&] { load_checkpoint(path); }).find(path), std::string::npos) << length;
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int flip : {0x01, 0x08, 0x20, 0x80}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      write_plain_file(path, changed);
      EXPECT_NE(error_text([&] { load_checkpoint(path); }).find(path), std::string::npos) << i << " " << flip;
    }
  }
}

TEST(CheckpointTest, AFullDiskLeavesTheOlderOnes) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), checkpoint_at(1), {.last = 1});
  const std::string text = test::text_from_child([&]() -> std::string {
    const rlimit limit{100'000, 100'000};
    std::signal(SIGXFSZ, SIG_IGN);
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit could be set";
    Checkpoint large = checkpoint_at(2);
    large.tensors.push_back(HostTensor::of<float>("large", {100'000}, std::vector<float>(100'000)));
    save_checkpoint(folder.path(), large, {.last = 1});
    return "saved";
  });
  EXPECT_EQ(text,
            "[file] " + (folder / "step-00000002.safetensors").string() + ": cannot write: File too large");
  EXPECT_EQ(load_latest_checkpoint(folder.path()).checkpoint.manifest.iteration, 1);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(CheckpointTest, AKillAtAnyMomentLeavesAWholeLatestOne) {
  const TemporaryFolder folder;
  std::minstd_rand random(2);
  std::int64_t latest = 1;
  save_checkpoint(folder.path(), checkpoint_at(latest));
  for (int round = 0; round < 25; ++round) {
    test::ChildProcess writer([&] {
      for (std::int64_t iteration = latest + 1;; ++iteration) {
        Checkpoint checkpoint = checkpoint_at(iteration);
        const std::vector<float> values(30'000, static_cast<float>(iteration));
        checkpoint.tensors.push_back(HostTensor::of<float>("large", {30'000}, std::span(values)));
        save_checkpoint(folder.path(), checkpoint, {.last = 2});
      }
    });
    if (round == 0) {  // however slow the machine is, one of the writers gets as far as a checkpoint
      const auto is_new = [&](const CheckpointFile& file) { return file.iteration > latest; };
      while (std::ranges::none_of(list_checkpoints(folder.path()), is_new)) std::this_thread::yield();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 10'000));
    writer.kill();
    const LatestCheckpoint found = load_latest_checkpoint(folder.path());
    ASSERT_GE(found.checkpoint.manifest.iteration, latest);
    latest = found.checkpoint.manifest.iteration;
    for (const CheckpointFile& file : list_checkpoints(folder.path())) {
      ASSERT_EQ(load_checkpoint(file.path).manifest.iteration, file.iteration);
    }
  }
  EXPECT_GT(latest, 1);
  save_checkpoint(folder.path(), checkpoint_at(latest + 1), {.last = 1});
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace purine::io
