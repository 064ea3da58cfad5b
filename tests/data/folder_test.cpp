#include "purine/data/folder.h"

#include <gtest/gtest.h>

#include "purine/data/dataset.h"
#include "tests/data/image_files.h"
#include "tests/support/error_text.h"
#include "tests/support/plain_file.h"
#include "tests/support/temporary_folder.h"

namespace purine::data {
namespace {

using test::error_text;
using test::TemporaryFolder;

void add_file(const TemporaryFolder& folder, std::string_view name, std::string_view content = "x") {
  std::filesystem::create_directories((folder / name).parent_path());
  test::write_plain_file(folder / name, content);
}

std::vector<std::string> paths_of(const FolderListing& listing) {
  std::vector<std::string> paths;
  for (const FolderListing::File& file : listing.images) {
    paths.push_back(file.path + " " + std::to_string(file.label));
  }
  return paths;
}

TEST(FolderTest, ListsByBytes) {
  const TemporaryFolder folder;
  for (const char* name :
       {"dog/2.jpg", "dog/10.JPG", "dog/a.jpeg", "Zebra/x.PNG", "\xc3\xa4hre/y.Jpeg", "cat/deep/er/1.png",
        "cat/deep/2.png", "cat/9.png", "cat/notes.txt", "cat/z.jpg.part", "README", ".hidden/1.jpg",
        "cat/.1.jpg", "cat/.thumbnails/1.jpg", "cat/._9.png"}) {
    add_file(folder, name);
  }
  const FolderListing listing = list_folder(folder.path().string());
  EXPECT_EQ(listing.classes, (std::vector<std::string>{"Zebra", "cat", "dog", "\xc3\xa4hre"}));
  EXPECT_EQ(paths_of(listing), (std::vector<std::string>{"Zebra/x.PNG 0", "cat/9.png 1", "cat/deep/2.png 1",
                                                         "cat/deep/er/1.png 1", "dog/10.JPG 2", "dog/2.jpg 2",
                                                         "dog/a.jpeg 2", "\xc3\xa4hre/y.Jpeg 3"}));
  EXPECT_EQ(listing.ignored, (std::vector<std::string>{"cat/notes.txt", "cat/z.jpg.part"}));
}

TEST(FolderTest, FollowsLinksOnce) {
  const TemporaryFolder folder;
  add_file(folder, "real/1.png");
  std::filesystem::create_directory(folder / "set");
  std::filesystem::create_directory_symlink(folder / "real", folder / "set/linked");
  std::filesystem::create_directory_symlink(folder / "real", folder / "real/itself");
  EXPECT_EQ(paths_of(list_folder((folder / "set").string())), (std::vector<std::string>{"linked/1.png 0"}));
}

TEST(FolderTest, ALinkToWhatHoldsTheSetIsAnError) {
  const TemporaryFolder folder;
  add_file(folder, "set/cat/1.png");
  const std::string set = (folder / "set").string();
  for (const char* const link : {"set/up", "set/cat/up"}) {
    for (const char* const target : {"set", "."}) {
      std::filesystem::create_directory_symlink(folder / target, folder / link);
      EXPECT_EQ(error_text([&] { list_folder(set); }),
                "[folder] " + (folder / link).string() +
                    ": leads to a folder that holds the whole set; hint: remove the link: every image would "
                    "be counted again, and as one of this class");
      std::filesystem::remove(folder / link);
    }
  }
  EXPECT_EQ(paths_of(list_folder(set)), (std::vector<std::string>{"cat/1.png 0"}));
}

TEST(FolderTest, ReadsImagesAndNamesThem) {
  const TemporaryFolder folder;
  const Image first = test::waves(5, 7, 3);
  const Image second = test::waves(9, 4, 1);
  add_file(folder, "train/a/1.png", test::as_text(test::png_file(first)));
  add_file(folder, "train/b/1.png", test::as_text(test::png_file(second)));
  const DatasetPtr dataset = open_folder(folder.path().string(), Subset::train);
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->label(1), 1);
  EXPECT_TRUE(dataset->encoded());
  EXPECT_FALSE(dataset->image_size());
  EXPECT_EQ(dataset->sample_name(1), (folder / "train/b/1.png").string());
  EXPECT_EQ(dataset->read(0).pixels, first.pixels);
  const Image grey = dataset->read(1);
  EXPECT_EQ(grey.channels, 1);
  EXPECT_EQ(grey.pixels, second.pixels);
  add_file(folder, "train/b/1.png", "no image");
  EXPECT_EQ(error_text([&] { dataset->read(1); }),
            "[image] " + (folder / "train/b/1.png").string() +
                ": is neither a JPEG nor a PNG image; hint: other formats have to be converted first");
}

TEST(FolderTest, ATestSetHasTheTrainingSetsLabels) {
  const TemporaryFolder folder;
  for (const char* name :
       {"train/a/1.png", "train/b/1.png", "train/c/1.png", "test/a/1.png", "val/c/1.png"}) {
    add_file(folder, name);
  }
  const DatasetPtr test = open_folder(folder.path().string(), Subset::test);
  ASSERT_EQ(test->size(), 1);
  EXPECT_EQ(test->label(0), 2);
  EXPECT_EQ(test->class_names(), (std::vector<std::string>{"a", "b", "c"}));
  add_file(folder, "val/d/1.png");
  EXPECT_EQ(error_text([&] { open_folder(folder.path().string(), Subset::test); }),
            "[folder] " + (folder / "val/d").string() +
                ": is none of the 3 known classes; hint: a test set's classes have the training set's names");
}

TEST(FolderTest, TheFingerprintIsOfNamesAndLabels) {
  const TemporaryFolder one;
  const TemporaryFolder other;
  for (const TemporaryFolder* folder : {&one, &other}) {
    add_file(*folder, "a/1.png");
    add_file(*folder, "b/12.png");
  }
  const auto fingerprint = [](const TemporaryFolder& folder) {
    return open_folder(folder.path().string())->fingerprint();
  };
  EXPECT_EQ(fingerprint(one), fingerprint(other));
  add_file(other, "a/2.png");
  EXPECT_NE(fingerprint(one), fingerprint(other));
}

TEST(FolderTest, WhatIsWrongIsSaid) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  EXPECT_EQ(error_text([&] { open_folder(path + "/none"); }),
            "[folder] " + path + "/none: can't be read: No such file or directory");
  EXPECT_EQ(error_text([&] { open_folder(path); }),
            "[folder] " + path +
                ": holds no images; hint: images lie in folders named after their classes, as .jpg or .png");
  EXPECT_EQ(error_text([&] { open_folder(path, Subset::train); }),
            "[folder] " + path + ": has no folder train");
  add_file(folder, "train/a/1.png");
  add_file(folder, "train/b/1.txt");
  EXPECT_EQ(
      error_text([&] { open_folder(path, Subset::train); }),
      "[folder] " + path +
          "/train/b: is a class without images; hint: remove the folder, or put .jpg or .png files there");
  EXPECT_EQ(error_text([&] { open_folder(path, Subset::test); }),
            "[folder] " + path + ": has no folder val, validation or test");
}

}  // namespace
}  // namespace purine::data
