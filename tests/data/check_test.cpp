#include "purine/data/check.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "purine/core/json_helpers.h"
#include "tests/data/image_files.h"
#include "tests/support/error_text.h"
#include "tests/support/plain_file.h"
#include "tests/support/temporary_folder.h"

namespace purine::data {
namespace {

using test::error_text;
using test::TemporaryFolder;

void add_file(const TemporaryFolder& folder, std::string_view name, const test::Bytes& bytes) {
  std::filesystem::create_directories((folder / name).parent_path());
  test::write_plain_file(folder / name, test::as_text(bytes));
}

// A training set with a broken, an odd and a turned image, and a test set with a class of its own.
void fill(const TemporaryFolder& folder) {
  const Image color = test::waves(10, 20, 3);
  test::JpegOptions turned;
  turned.exif = test::exif_segment(6);
  add_file(folder, "train/cat/1.jpg", test::jpeg_file(color));
  add_file(folder, "train/cat/2.jpg", test::jpeg_file(color, turned));
  add_file(folder, "train/cat/3.png", test::png_file(test::waves(9, 8, 1)));
  add_file(folder, "train/cat/notes.txt", {'x'});
  test::Bytes odd = test::jpeg_file(color);
  odd.insert(odd.end() - 2, 100, 0);
  add_file(folder, "train/dog/odd.jpg", odd);
  test::Bytes cut = test::jpeg_file(color);
  cut.resize(cut.size() - 40);
  add_file(folder, "train/dog/cut.jpg", cut);
  add_file(folder, "train/dog/empty.png", {});
  std::filesystem::create_directories(folder / "train/emu");
  add_file(folder, "val/bird/1.png", test::png_file(color));
}

TEST(CheckTest, FindsEverythingInAFolderOfClasses) {
  const TemporaryFolder folder;
  fill(folder);
  for (const int threads : {1, 4}) {
    std::vector<std::int64_t> progress;
    const CheckReport report = check(
        folder.path().string(), {.threads = threads, .progress = [&](std::int64_t done, std::int64_t total) {
                                   EXPECT_EQ(total, 7);
                                   progress.push_back(done);
                                 }});
    EXPECT_EQ(progress, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7}));
    EXPECT_FALSE(report.ok());
    std::string text = report.text();
    for (std::size_t at = text.find(folder.path().string()); at != std::string::npos;
         at = text.find(folder.path().string())) {
      text.replace(at, folder.path().string().size(), "DIR");
    }
    const std::size_t number = text.find(" extraneous bytes");
    ASSERT_NE(number, std::string::npos);
    const std::size_t digits = text.rfind(' ', number - 1) + 1;
    text.replace(digits, number - digits, "N");
    EXPECT_EQ(text,
              "DIR: folder\n"
              "train: 6 images in 3 classes, 2 broken\n"
              "  classes by label: 0 cat 3, 1 dog 3 (2 broken), 2 emu 0\n"
              "  sizes: widths 8 to 20, heights 9 to 20 pixels\n"
              "  modes: 3 JPEG ycc, 1 PNG grey\n"
              "  turned upright: 1\n"
              "  passed over: 1 file, cat/notes.txt the first\n"
              "  harmless: DIR/train/dog/odd.jpg: Corrupt JPEG data: N extraneous bytes before marker 0xd9\n"
              "  broken: DIR/train/dog/cut.jpg: Premature end of JPEG file\n"
              "  broken: DIR/train/dog/empty.png: the file is empty\n"
              "  problem: class emu has no images\n"
              "val: 1 image in 4 classes, 0 broken\n"
              "  classes by label: 0 cat 0, 1 dog 0, 2 emu 0, - bird 1\n"
              "  sizes: all 20 x 10 pixels (width x height)\n"
              "  modes: 1 PNG rgb\n"
              "  problem: class bird is none of the training set's\n");
  }
}

TEST(CheckTest, TellsProgramsTheSame) {
  const TemporaryFolder folder;
  fill(folder);
  const nlohmann::json report = parse_json(check(folder.path().string()).json());
  EXPECT_EQ(report["format"], "folder");
  EXPECT_EQ(report["ok"], false);
  ASSERT_EQ(report["parts"].size(), 2U);
  const nlohmann::json& train = report["parts"][0];
  EXPECT_EQ(train["name"], "train");
  EXPECT_EQ(train["images"], 6);
  EXPECT_EQ(train["classes"][1],
            (nlohmann::json{{"name", "dog"}, {"label", 1}, {"images", 3}, {"broken", 2}}));
  EXPECT_EQ(train["broken"][1]["path"], (folder / "train/dog/empty.png").string());
  EXPECT_EQ(train["broken"][1]["reason"], "the file is empty");
  EXPECT_EQ(train["harmless"].size(), 1U);
  EXPECT_EQ(train["ignored"], nlohmann::json{"cat/notes.txt"});
  EXPECT_EQ(train["modes"], (nlohmann::json{{"JPEG ycc", 3}, {"PNG grey", 1}}));
  EXPECT_EQ(train["sizes"][0], (nlohmann::json{{"height", 9}, {"width", 8}, {"images", 1}}));
  EXPECT_EQ(train["turned"], 1);
  EXPECT_EQ(report["parts"][1]["classes"][0],
            (nlohmann::json{{"name", "cat"}, {"label", 0}, {"images", 0}, {"broken", 0}}));
  EXPECT_EQ(report["parts"][1]["classes"][3],
            (nlohmann::json{{"name", "bird"}, {"label", nullptr}, {"images", 1}, {"broken", 0}}));
}

TEST(CheckTest, AFolderOfClassesItselfIsAPartWithoutAName) {
  const TemporaryFolder folder;
  add_file(folder, "a/1.png", test::png_file(test::waves(4, 5, 3)));
  add_file(folder, "b/1.png", test::png_file(test::waves(4, 5, 3)));
  const CheckReport report = check(folder.path().string());
  EXPECT_TRUE(report.ok());
  ASSERT_EQ(report.parts.size(), 1U);
  EXPECT_EQ(report.text(), folder.path().string() +
                               ": folder\n2 images in 2 classes, 0 broken\n  classes by label: 0 a 1, 1 b 1\n"
                               "  sizes: all 5 x 4 pixels (width x height)\n  modes: 2 PNG rgb\n");
}

TEST(CheckTest, ReadsSetsThatAreFiles) {
  const CheckReport fashion = check("/usr/share/datasets/fashion-mnist");
  EXPECT_TRUE(fashion.ok());
  EXPECT_EQ(fashion.format, "idx");
  ASSERT_EQ(fashion.parts.size(), 2U);
  EXPECT_EQ(fashion.parts[0].images, 60000);
  EXPECT_EQ(fashion.parts[1].classes[3].images, 1000);
  EXPECT_EQ(fashion.parts[0].sizes.begin()->first, (std::pair{28, 28}));

  const TemporaryFolder folder;
  test::Bytes record(3073, 7);
  add_file(folder, "test_batch.bin", record);
  add_file(folder, "data_batch_1.bin", record);
  const CheckReport cifar = check(folder.path().string());
  EXPECT_FALSE(cifar.ok());
  EXPECT_EQ(
      cifar.text(),
      folder.path().string() + ": cifar10\ntrain: 0 images in 0 classes, 0 broken\n  problem: " +
          (folder / "data_batch_2.bin").string() +
          ": can't be read: No such file or directory\n"
          "test: 1 image in 10 classes, 0 broken\n"
          "  classes by label: 0 airplane 0, 1 automobile 0, 2 bird 0, 3 cat 0, 4 deer 0, 5 dog 0, 6 frog 0, "
          "7 horse 1, 8 ship 0, 9 truck 0\n"
          "  sizes: all 32 x 32 pixels (width x height)\n  modes: 1 rgb\n"
          "  doubtful: 9 of 10 classes have no image: 0 to 6, 8 to 9\n");
}

// `purine train` needs both parts of a set.
TEST(CheckTest, APartThatIsMissingOrEmptyIsAProblem) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  add_file(folder, "train/a/1.png", test::png_file(test::waves(4, 5, 3)));
  EXPECT_FALSE(check(path).ok());
  EXPECT_TRUE(
      check(path).text().ends_with("test: 0 images in 0 classes, 0 broken\n"
                                   "  problem: there is no folder val, validation or test\n"))
      << check(path).text();
  std::filesystem::create_directories(folder / "val/a");
  EXPECT_FALSE(check(path).ok());
  EXPECT_TRUE(
      check(path).text().ends_with("val: 0 images in 1 class, 0 broken\n  classes by label: 0 a 0\n"
                                   "  problem: " +
                                   path + "/val: holds no images\n"))
      << check(path).text();
  std::filesystem::rename(folder / "val", folder / "none");
  std::filesystem::rename(folder / "train", folder / "val");
  std::filesystem::rename(folder / "none", folder / "train");
  EXPECT_FALSE(check(path).ok());
  EXPECT_NE(check(path).text().find("  problem: " + path + "/train: holds no images\nval: 1 image"),
            std::string::npos)
      << check(path).text();

  const TemporaryFolder files;
  for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"}) {
    std::filesystem::create_symlink(std::filesystem::path("/usr/share/datasets/fashion-mnist") / name,
                                    files / name);
  }
  const CheckReport report = check(files.path().string());
  EXPECT_FALSE(report.ok());
  ASSERT_EQ(report.parts.size(), 2U);
  EXPECT_TRUE(report.parts[0].problems.empty());
  EXPECT_EQ(report.parts[1].problems,
            std::vector<std::string>{files.path().string() + ": has no file t10k-images-idx3-ubyte (or "
                                                             ".gz)"});
}

TEST(CheckTest, ManyClassesAreTheSmallestAndTheLargest) {
  CheckReport report;
  report.folder = "set";
  report.format = "folder";
  report.parts.resize(1);
  for (int i = 0; i < 21; ++i)
    report.parts[0].classes.push_back({"c" + std::to_string(i), i, 100 + (i * 5) % 21, 0});
  EXPECT_EQ(
      report.text(),
      "set: folder\n0 images in 21 classes, 0 broken\n"
      "  classes by label: 0 c0 100, 1 c1 105, 2 c2 110, … 20 c20 116; smallest c0 100, largest c4 120\n");
  for (const std::size_t empty : {4, 9}) report.parts[0].classes[empty].images = 0;
  EXPECT_TRUE(report.text().ends_with("; smallest c4 0, largest c8 119; empty c4, c9\n")) << report.text();
  for (CheckReport::Class& item : report.parts[0].classes) item.images = 0;
  EXPECT_TRUE(report.text().ends_with(", c18, c19 and 1 more\n")) << report.text();
}

TEST(CheckTest, LineFeedsInNamesBreakNoLine) {
  const TemporaryFolder folder;
  add_file(folder, "new\nline/1.png", test::png_file(test::waves(4, 5, 3)));
  add_file(folder, "new\nline/2\n.png", {});
  const CheckReport report = check(folder.path().string());
  EXPECT_NE(report.text().find("  classes by label: 0 new\\nline 2 (1 broken)\n"), std::string::npos);
  EXPECT_NE(report.text().find("/new\\nline/2\\n.png: the file is empty\n"), std::string::npos);
  const nlohmann::json json = parse_json(report.json());
  EXPECT_EQ(json["parts"][0]["classes"][0]["name"], "new\nline");
  EXPECT_EQ(report.json().find('\n'), std::string::npos);
}

TEST(CheckTest, WhatIsNoSetIsAnError) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  EXPECT_EQ(error_text([&] { check(path + "/none"); }),
            "[check] " + path + "/none: can't be read: No such file or directory");
  EXPECT_EQ(error_text([&] { check(path); }),
            "[check] " + path +
                ": holds no set that can be read; hint: a set is a folder of images for each class, also "
                "below train "
                "and val, or the files of an IDX, CIFAR-10 or CIFAR-100 set");
}

TEST(CheckTest, AnExceptionOfTheCallersEndsIt) {
  const TemporaryFolder folder;
  fill(folder);
  EXPECT_THROW(check(folder.path().string(),
                     {.threads = 3,
                      .progress = [](std::int64_t, std::int64_t) { throw std::out_of_range("enough"); }}),
               std::out_of_range);
}

}  // namespace
}  // namespace purine::data
