// What a folder of classes holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace purine::data {

/// The files under a folder whose folders are classes.
struct FolderListing {
  struct File {
    std::string path;  ///< relative to the folder, with '/' between parts: `cat/1.jpg`
    std::int64_t label = 0;
  };
  std::vector<std::string> classes;  ///< sorted by bytes
  std::vector<File> images;          ///< by class, folder and name, each by bytes
  std::vector<std::string> ignored;  ///< files in class folders that are no images by their names, relative
};

/// Lists a folder of classes as open_folder describes it. Symbolic links are followed; a folder that is
/// reached again through one that lies in it is not entered twice. Throws Error("folder", …) with the path of
/// a folder that can't be read, or that is a link to one which holds the whole set.
FolderListing list_folder(const std::string& folder);

/// `ROOT/train`, or the first of `ROOT/val`, `ROOT/validation`, `ROOT/test` that exists; empty if there is
/// none.
std::string find_training_folder(const std::string& root);
std::string find_test_folder(const std::string& root);

}  // namespace purine::data
