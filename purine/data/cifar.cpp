#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "purine/core/amount_text.h"
#include "purine/core/error.h"
#include "purine/data/dataset.h"
#include "purine/data/file.h"
#include "purine/data/memory_dataset.h"

namespace purine::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t side = 32;
constexpr std::size_t plane = side * side;

// A record is its labels, a byte each, and the red, green and blue plane.
struct RecordFormat {
  std::string_view component;
  std::size_t label_bytes;
  std::size_t label_offset;
  std::size_t record_bytes() const { return label_bytes + 3 * plane; }
};

std::string place_of(const std::string& folder, const char* archive_folder, const std::string& first_file) {
  const fs::path within = fs::path(folder) / archive_folder;
  const bool nested = !fs::exists(fs::path(folder) / first_file) && fs::is_directory(within);
  return nested ? within.string() : folder;
}

void append_records(const std::string& path, const RecordFormat& format, internal::MemoryImages& images) {
  std::vector<std::byte> bytes;
  try {
    read_file(path, bytes);
  } catch (const Error& error) {
    throw Error(format.component, error.message()).at(path);
  }
  const std::size_t record = format.record_bytes();
  if (bytes.empty() || bytes.size() % record != 0) {
    throw Error(format.component,
                fmt::format("has {} bytes, expected a multiple of {}: {} and 32 x 32 x 3 values",
                            bytes.size(), record, counted_text(format.label_bytes, "label byte")))
        .at(path);
  }
  for (std::size_t begin = 0; begin < bytes.size(); begin += record) {
    images.labels.push_back(std::to_integer<std::uint8_t>(bytes[begin + format.label_offset]));
    const std::byte* planes = bytes.data() + begin + format.label_bytes;
    for (std::size_t i = 0; i < plane; ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        images.pixels.push_back(std::to_integer<std::uint8_t>(planes[c * plane + i]));
      }
    }
  }
  images.files.push_back(path);
  images.file_ends.push_back(static_cast<std::int64_t>(images.labels.size()));
}

// The names in a file beside the data, if it is there.
std::vector<std::string> class_names(const fs::path& file, std::vector<std::string> otherwise,
                                     std::string_view component) {
  if (!fs::exists(file)) return otherwise;
  std::vector<std::string> names = read_lines(file.string());
  if (names.size() != otherwise.size()) {
    throw Error(component,
                fmt::format("has {} lines, expected {} class names", names.size(), otherwise.size()))
        .at(file.string());
  }
  return names;
}

DatasetPtr open(const std::string& folder, const std::vector<std::string>& files, const RecordFormat& format,
                std::vector<std::string> names) {
  internal::MemoryImages images;
  images.size = {3, side, side};
  images.class_names = std::move(names);
  for (const std::string& file : files) {
    append_records((fs::path(folder) / file).string(), format, images);
  }
  internal::check_labels(format.component, images);
  return internal::make_memory_dataset(std::move(images));
}

}  // namespace

bool internal::has_cifar10(const std::string& folder, Subset subset) {
  const char* file = subset == Subset::train ? "data_batch_1.bin" : "test_batch.bin";
  return fs::exists(fs::path(place_of(folder, "cifar-10-batches-bin", file)) / file);
}

bool internal::has_cifar100(const std::string& folder, Subset subset) {
  const char* file = subset == Subset::train ? "train.bin" : "test.bin";
  return fs::exists(fs::path(place_of(folder, "cifar-100-binary", file)) / file);
}

DatasetPtr open_cifar10(const std::string& folder, Subset subset) {
  std::vector<std::string> files = {"test_batch.bin"};
  if (subset == Subset::train) {
    files.clear();
    for (int i = 1; i <= 5; ++i) files.push_back(fmt::format("data_batch_{}.bin", i));
  }
  const std::string place = place_of(folder, "cifar-10-batches-bin", files.front());
  return open(
      place, files, {"cifar10", 1, 0},
      class_names(fs::path(place) / "batches.meta.txt",
                  {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"},
                  "cifar10"));
}

DatasetPtr open_cifar100(const std::string& folder, Subset subset, CifarLabels labels) {
  const std::string file = subset == Subset::train ? "train.bin" : "test.bin";
  const std::string place = place_of(folder, "cifar-100-binary", file);
  const bool fine = labels == CifarLabels::fine;
  // The coarse label is the first byte.
  return open(place, {file}, {"cifar100", 2, fine ? std::size_t{1} : std::size_t{0}},
              class_names(fs::path(place) / (fine ? "fine_label_names.txt" : "coarse_label_names.txt"),
                          internal::numbered_classes(fine ? 100 : 20), "cifar100"));
}

}  // namespace purine::data
