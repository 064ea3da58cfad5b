#include "purine/data/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>

#include "purine/core/error.h"
#include "purine/data/class_counts.h"
#include "purine/data/dataset.h"
#include "purine/data/file.h"
#include "purine/data/folder.h"
#include "purine/data/image.h"
#include "purine/data/memory_dataset.h"

namespace purine::data {
namespace {

namespace fs = std::filesystem;
using Part = CheckReport::Part;

// The sets that are files of their own, told by the files' names.
struct FileFormat {
  const char* name;
  bool (*has)(const std::string& folder, Subset subset);
  DatasetPtr (*open)(const std::string& folder, Subset subset);
};

constexpr FileFormat file_formats[] = {
    {"idx", internal::has_idx, open_idx},
    {"cifar10", internal::has_cifar10, open_cifar10},
    {"cifar100", internal::has_cifar100,
     [](const std::string& folder, Subset subset) { return open_cifar100(folder, subset); }}};

// A part that lies in a folder of classes, and its files.
struct ListedPart {
  std::string folder;
  FolderListing listing;
};

void look_at_image(const std::string& path, const FolderListing::File& file, std::vector<std::byte>& bytes,
                   Image& image, std::mutex& mutex, Part& part) {
  try {
    read_file(path, bytes);
    const std::unique_ptr<Decoder> decoder = open_image(bytes, {.keep_grey = true});
    decoder->decode(image);
    const ImageInfo& info = decoder->info();
    const std::lock_guard lock(mutex);
    ++part.modes[fmt::format("{} {}{}", name_of(info.format), info.mode,
                             info.bits == 8 ? "" : fmt::format(" {} bit", info.bits))];
    ++part.sizes[{info.height, info.width}];
    if (info.orientation != 1) ++part.turned;
    if (!decoder->warning().empty()) part.harmless.push_back({path, decoder->warning()});
  } catch (const Error& error) {
    const std::lock_guard lock(mutex);
    part.broken.push_back({path, error.message()});
    ++part.classes[static_cast<std::size_t>(file.label)].broken;
  }
}

// Runs action(i) for i below count, on several threads; the first exception stops all and is thrown.
template <typename MakeAction>
void for_each_index(std::size_t count, int threads, const MakeAction& make_action) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      auto action = make_action();
      for (std::size_t i = next++; i < count; i = next++) action(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

void decode_all(const std::vector<ListedPart>& listed, std::vector<Part>& parts,
                const CheckOptions& options) {
  struct Item {
    std::size_t part;
    const FolderListing::File* file;
  };
  std::vector<Item> items;
  for (std::size_t p = 0; p < listed.size(); ++p) {
    for (const FolderListing::File& file : listed[p].listing.images) items.push_back({p, &file});
  }
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int threads = options.threads > 0 ? options.threads : cores;
  std::mutex mutex;
  std::int64_t done = 0;
  for_each_index(items.size(), threads, [&] {
    return [&, bytes = std::vector<std::byte>(), image = Image()](std::size_t i) mutable {
      const Item& item = items[i];
      const std::string path = listed[item.part].folder + '/' + item.file->path;
      look_at_image(path, *item.file, bytes, image, mutex, parts[item.part]);
      if (!options.progress) return;
      const std::lock_guard lock(mutex);
      options.progress(++done, static_cast<std::int64_t>(items.size()));
    };
  });
  const auto by_path = [](const CheckReport::Finding& left, const CheckReport::Finding& right) {
    return left.path < right.path;
  };
  for (Part& part : parts) {
    std::sort(part.broken.begin(), part.broken.end(), by_path);
    std::sort(part.harmless.begin(), part.harmless.end(), by_path);
  }
}

Part describe(const std::string& name, const FolderListing& listing) {
  Part part;
  part.name = name;
  part.images = static_cast<std::int64_t>(listing.images.size());
  part.ignored = listing.ignored;
  for (const std::string& class_name : listing.classes) part.classes.push_back({.name = class_name});
  for (const FolderListing::File& file : listing.images) {
    ++part.classes[static_cast<std::size_t>(file.label)].images;
  }
  return part;
}

// Gives the classes of a part the labels of the training set's, in whose order they come from then on.
void label_classes(Part& part, const std::vector<std::string>& known) {
  std::vector<CheckReport::Class> labelled;
  for (const std::string& name : known) {
    labelled.push_back({.name = name, .label = static_cast<std::int64_t>(labelled.size())});
  }
  for (const CheckReport::Class& item : part.classes) {
    const auto found = std::find(known.begin(), known.end(), item.name);
    if (found == known.end()) {
      labelled.push_back(item);
    } else {
      CheckReport::Class& of_label = labelled[static_cast<std::size_t>(found - known.begin())];
      of_label.images = item.images;
      of_label.broken = item.broken;
    }
  }
  part.classes = std::move(labelled);
}

void check_folders(CheckReport& report, const CheckOptions& options) {
  std::vector<ListedPart> listed;
  std::vector<Part> parts;
  const auto list = [&](const std::string& name, const std::string& folder) {
    listed.push_back({folder, list_folder(folder)});
    parts.push_back(describe(name, listed.back().listing));
  };
  const std::string training = find_training_folder(report.folder);
  if (training.empty()) {
    list("", report.folder);
  } else {
    list("train", training);
    for (const char* name : {"val", "validation", "test"}) {
      const fs::path folder = fs::path(report.folder) / name;
      if (fs::is_directory(folder)) list(name, folder.string());
    }
  }
  if (training.empty() && listed[0].listing.images.empty()) {
    throw Error(
        "check", "holds no set that can be read",
        "a set is a folder of images for each class, also below train and val, or the files of an IDX, "
        "CIFAR-10 or CIFAR-100 set")
        .at(report.folder);
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::vector<std::string>& known = listed[0].listing.classes;
    if (parts[p].images == 0)
      parts[p].problems.push_back(fmt::format("{}: holds no images", listed[p].folder));
    for (const CheckReport::Class& item : parts[p].classes) {
      if (p == 0 && item.images == 0 && parts[p].images > 0) {
        parts[p].problems.push_back(fmt::format("class {} has no images", item.name));
      }
      if (p > 0 && std::find(known.begin(), known.end(), item.name) == known.end()) {
        parts[p].problems.push_back(fmt::format("class {} is none of the training set's", item.name));
      }
    }
  }
  // Classes without images are problems already.
  if (parts[0].problems.empty()) {
    std::vector<std::int64_t> counts;
    for (const CheckReport::Class& item : parts[0].classes) counts.push_back(item.images);
    parts[0].doubts = doubts_about(listed[0].listing.classes, counts);
  }
  decode_all(listed, parts, options);
  for (Part& part : parts) label_classes(part, listed[0].listing.classes);
  if (!training.empty() && parts.size() == 1) {
    Part& test = parts.emplace_back();
    test.name = name_of(Subset::test);
    test.problems.emplace_back("there is no folder val, validation or test");
  }
  report.parts = std::move(parts);
}

Part check_files(const std::string& folder, Subset subset, const FileFormat& format) {
  Part part;
  part.name = name_of(subset);
  try {
    const DatasetPtr dataset = format.open(folder, subset);
    part.images = dataset->size();
    for (const std::string& class_name : dataset->class_names()) {
      part.classes.push_back({.name = class_name, .label = static_cast<std::int64_t>(part.classes.size())});
    }
    const std::vector<std::int64_t> counts = class_counts(*dataset);
    for (std::size_t label = 0; label < counts.size(); ++label) part.classes[label].images = counts[label];
    part.doubts = doubts_about(dataset->class_names(), counts);
    const ImageSize size = *dataset->image_size();
    part.modes[size.channels == 1 ? "grey" : "rgb"] = part.images;
    part.sizes[{static_cast<int>(size.height), static_cast<int>(size.width)}] = part.images;
  } catch (const Error& error) {
    part.problems.emplace_back(error.path().empty() ? error.message()
                                                    : error.path() + ": " + error.message());
  }
  return part;
}

}  // namespace

CheckReport check(const std::string& folder, const CheckOptions& options) {
  CheckReport report;
  report.folder = folder;
  for (const FileFormat& format : file_formats) {
    if (!format.has(folder, Subset::train) && !format.has(folder, Subset::test)) continue;
    report.format = format.name;
    for (const Subset subset : {Subset::train, Subset::test}) {
      report.parts.push_back(check_files(folder, subset, format));
    }
    return report;
  }
  report.format = "folder";
  try {
    check_folders(report, options);
  } catch (const Error& error) {
    throw Error("check", error.message(), error.hint()).at(error.path());
  }
  return report;
}

}  // namespace purine::data
