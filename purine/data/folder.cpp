#include "purine/data/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "purine/core/error.h"
#include "purine/core/random.h"
#include "purine/data/dataset.h"
#include "purine/data/file.h"

namespace purine::data {
namespace {

namespace fs = std::filesystem;

bool is_image_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower.ends_with(".jpg") || lower.ends_with(".jpeg") || lower.ends_with(".png");
}

// The names in a folder that don't begin with a dot, by bytes: folders and everything else.
struct Names {
  std::vector<std::string> folders;
  std::vector<std::string> files;
};

Names names_in(const fs::path& folder) {
  Names names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.')) continue;
    std::error_code dangling;  // a link to nothing is a file that can't be read
    (entry->is_directory(dangling) ? names.folders : names.files).push_back(name);
  }
  if (error) throw Error("folder", "can't be read: " + error.message()).at(folder.string());
  std::sort(names.folders.begin(), names.folders.end());
  std::sort(names.files.begin(), names.files.end());
  return names;
}

bool holds(const fs::path& outer, const fs::path& inner) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

// Lists the files of one class. `above` holds the real paths of the folders on the way down, first the whole
// set's.
void list_class(const fs::path& root, const std::string& relative, std::int64_t label,
                std::vector<fs::path>& above, FolderListing& listing) {
  const fs::path folder = root / relative;
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (!error && holds(real, above.front())) {
    throw Error("folder", "leads to a folder that holds the whole set",
                "remove the link: every image would be counted again, and as one of this class")
        .at(folder.string());
  }
  if (!error && std::find(above.begin(), above.end(), real) != above.end()) return;
  above.push_back(real);
  const Names names = names_in(folder);
  for (const std::string& name : names.files) {
    std::string path = relative + '/' + name;
    if (is_image_name(name)) {
      listing.images.push_back({std::move(path), label});
    } else {
      listing.ignored.push_back(std::move(path));
    }
  }
  for (const std::string& name : names.folders) {
    list_class(root, relative + '/' + name, label, above, listing);
  }
  above.pop_back();
}

std::string first_folder(const std::string& root, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const fs::path folder = fs::path(root) / name;
    if (fs::is_directory(folder)) return folder.string();
  }
  return {};
}

class FolderDataset final : public Dataset {
 public:
  FolderDataset(std::string folder, std::vector<std::string> classes,
                const std::vector<FolderListing::File>& images)
      : folder_(std::move(folder)) {
    class_names_ = std::move(classes);
    ends_.reserve(images.size());
    labels_.reserve(images.size());
    for (const FolderListing::File& image : images) {
      paths_ += image.path;
      ends_.push_back(paths_.size());
      labels_.push_back(static_cast<std::uint32_t>(image.label));
    }
    paths_.shrink_to_fit();
    const std::string_view labels(reinterpret_cast<const char*>(labels_.data()),
                                  labels_.size() * sizeof(labels_[0]));
    const std::string_view ends(reinterpret_cast<const char*>(ends_.data()), ends_.size() * sizeof(ends_[0]));
    fingerprint_ = hash_text(fmt::format("{:016x} {:016x} {:016x} {}", hash_text(paths_), hash_text(ends),
                                         hash_text(labels), fmt::join(class_names_, "/")));
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::int64_t label(std::int64_t index) const override { return labels_[static_cast<std::size_t>(index)]; }
  std::optional<ImageSize> image_size() const override { return std::nullopt; }
  std::string sample_name(std::int64_t index) const override {
    const std::size_t i = static_cast<std::size_t>(index);
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return folder_ + '/' + paths_.substr(begin, ends_[i] - begin);
  }
  void read(std::int64_t index, Image& image, std::vector<std::byte>& file,
            const ScaleChoice& choose_scale) const override {
    const std::string path = sample_name(index);
    try {
      read_file(path, file);
      const std::unique_ptr<Decoder> decoder = open_image(file, {.keep_grey = true});
      const ImageInfo& info = decoder->info();
      decoder->decode(image, choose_scale ? choose_scale(info.height, info.width) : 8);
    } catch (const Error& error) {
      throw error.at(path);
    }
  }
  bool encoded() const override { return true; }
  std::uint64_t fingerprint() const override { return fingerprint_; }

 private:
  std::string folder_;
  // All relative paths, one behind the other: a million strings would take three times the memory.
  std::string paths_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> labels_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace

FolderListing list_folder(const std::string& folder) {
  FolderListing listing;
  listing.classes = names_in(folder).folders;
  std::vector<fs::path> above = {fs::canonical(folder)};
  for (std::size_t label = 0; label < listing.classes.size(); ++label) {
    list_class(folder, listing.classes[label], static_cast<std::int64_t>(label), above, listing);
  }
  return listing;
}

std::string find_training_folder(const std::string& root) {
  return first_folder(root, {"train"});
}

std::string find_test_folder(const std::string& root) {
  return first_folder(root, {"val", "validation", "test"});
}

DatasetPtr open_folder(const std::string& folder, const std::vector<std::string>* classes) {
  FolderListing listing = list_folder(folder);
  if (listing.images.empty()) {
    throw Error("folder", "holds no images",
                "images lie in folders named after their classes, as .jpg or .png")
        .at(folder);
  }
  if (classes != nullptr) {
    std::vector<std::int64_t> labels;
    for (const std::string& name : listing.classes) {
      const auto found = std::find(classes->begin(), classes->end(), name);
      if (found == classes->end()) {
        throw Error("folder", fmt::format("is none of the {} known classes", classes->size()),
                    "a test set's classes have the training set's names")
            .at((fs::path(folder) / name).string());
      }
      labels.push_back(found - classes->begin());
    }
    for (FolderListing::File& image : listing.images) {
      image.label = labels[static_cast<std::size_t>(image.label)];
    }
    return std::make_shared<FolderDataset>(folder, *classes, listing.images);
  }
  std::vector<bool> has_image(listing.classes.size());
  for (const FolderListing::File& image : listing.images)
    has_image[static_cast<std::size_t>(image.label)] = true;
  const auto without = std::find(has_image.begin(), has_image.end(), false);
  if (without != has_image.end()) {
    const std::string& name = listing.classes[static_cast<std::size_t>(without - has_image.begin())];
    throw Error("folder", "is a class without images", "remove the folder, or put .jpg or .png files there")
        .at((fs::path(folder) / name).string());
  }
  return std::make_shared<FolderDataset>(folder, std::move(listing.classes), listing.images);
}

DatasetPtr open_folder(const std::string& root, Subset subset) {
  const std::string training = find_training_folder(root);
  if (training.empty()) throw Error("folder", "has no folder train").at(root);
  if (subset == Subset::train) return open_folder(training);
  const std::string test = find_test_folder(root);
  if (test.empty()) throw Error("folder", "has no folder val, validation or test").at(root);
  const std::vector<std::string> classes = list_folder(training).classes;
  return open_folder(test, &classes);
}

}  // namespace purine::data
