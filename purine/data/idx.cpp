#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>

#include "purine/core/amount_text.h"
#include "purine/core/error.h"
#include "purine/data/dataset.h"
#include "purine/data/file.h"
#include "purine/data/memory_dataset.h"

namespace purine::data {
namespace {

namespace fs = std::filesystem;

enum class Kind : std::uint8_t { images, labels };

std::string_view ending_of(Kind kind) {
  return kind == Kind::images ? "idx3-ubyte" : "idx1-ubyte";
}

// What stands before `train-images-idx3-ubyte` in a file's name (`emnist-letters-`, often nothing), if that
// is what the name is.
std::optional<std::string> prefix_of(std::string_view name, Subset subset, Kind kind) {
  if (name.ends_with(".gz")) name.remove_suffix(3);
  if (!name.ends_with(ending_of(kind))) return std::nullopt;
  name.remove_suffix(ending_of(kind).size());
  if (!name.ends_with('-') && !name.ends_with('.')) return std::nullopt;
  name.remove_suffix(1);
  const std::string_view what = kind == Kind::images ? "-images" : "-labels";
  if (!name.ends_with(what)) return std::nullopt;
  name.remove_suffix(what.size());
  for (const std::string_view part : {"train", "t10k", "test"}) {
    if ((part == "train") != (subset == Subset::train) || !name.ends_with(part)) continue;
    name.remove_suffix(part.size());
    if (name.empty() || name.ends_with('-') || name.ends_with('_')) return std::string(name);
  }
  return std::nullopt;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) throw Error("idx", "the folder can't be read: " + error.message()).at(folder);
  std::sort(names.begin(), names.end());
  return names;
}

// The files of one kind by their prefixes; of a file that is there compressed and not, the latter, which
// comes first in byte order.
std::map<std::string, std::string> find_files(const std::vector<std::string>& names, Subset subset,
                                              Kind kind) {
  std::map<std::string, std::string> found;
  for (const std::string& name : names) {
    if (const auto prefix = prefix_of(name, subset, kind)) found.emplace(*prefix, name);
  }
  return found;
}

std::string usual_name(Subset subset, Kind kind) {
  return fmt::format("{}-{}-{}", subset == Subset::train ? "train" : "t10k",
                     kind == Kind::images ? "images" : "labels", ending_of(kind));
}

struct IdxFile {
  std::vector<std::int64_t> extents;
  std::vector<std::uint8_t> values;
};

// Reads a file of unsigned bytes with as many dimensions as its kind has: a big-endian magic number (0, 0,
// the type 8, the number of dimensions), each extent as 32 bits, and the values.
IdxFile read_idx(const std::string& path, Kind kind) {
  const int rank = kind == Kind::images ? 3 : 1;
  try {
    InflatingReader reader(path);
    const auto read_number = [&]() -> std::uint32_t {
      std::array<std::uint8_t, 4> bytes{};
      if (reader.read(bytes) != bytes.size()) throw Error("idx", "the file ends within its header");
      return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 |
             bytes[3];
    };
    const std::uint32_t magic = read_number();
    const std::uint32_t expected_magic = 0x800U + static_cast<std::uint32_t>(rank);
    if (magic != expected_magic) {
      throw Error("idx", fmt::format("begins with 0x{:08x}, expected 0x{:08x}: unsigned bytes in {}", magic,
                                     expected_magic, counted_text(rank, "dimension")));
    }
    IdxFile file;
    std::uint64_t count = 1;
    for (int i = 0; i < rank; ++i) {
      const std::uint32_t extent = read_number();
      if (extent == 0 || count > (std::uint64_t{1} << 46) / extent) {
        throw Error("idx", fmt::format("its header says that dimension {} has extent {}", i, extent));
      }
      count *= extent;
      file.extents.push_back(extent);
    }
    // The storage grows with what has been read, so that a damaged header can't ask for terabytes.
    constexpr std::uint64_t chunk = std::uint64_t{1} << 24;
    while (file.values.size() < count) {
      const std::size_t before = file.values.size();
      const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(chunk, count - before));
      file.values.resize(before + wanted);
      const std::size_t got = reader.read(std::span(file.values).subspan(before));
      if (got < wanted) {
        throw Error("idx", fmt::format("is cut short: expected {} bytes behind the header ({}), got {}",
                                       count, fmt::join(file.extents, " x "), before + got));
      }
    }
    reader.expect_end();
    return file;
  } catch (const Error& error) {
    throw Error("idx", error.message(), error.hint()).at(path);
  }
}

std::string join(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

// Without names the classes are numbered; the other subset may have a label that this one lacks.
std::int64_t count_classes(const std::string& folder, const std::vector<std::string>& names,
                           const std::string& prefix, Subset subset,
                           const std::vector<std::uint8_t>& labels) {
  int largest = *std::max_element(labels.begin(), labels.end());
  const Subset other = subset == Subset::train ? Subset::test : Subset::train;
  const auto files = find_files(names, other, Kind::labels);
  if (const auto file = files.find(prefix); file != files.end()) {
    const std::vector<std::uint8_t> others = read_idx(join(folder, file->second), Kind::labels).values;
    largest = std::max<int>(largest, *std::max_element(others.begin(), others.end()));
  }
  return largest + 1;
}

}  // namespace

bool internal::has_idx(const std::string& folder, Subset subset) {
  if (!fs::is_directory(folder)) return false;
  const std::vector<std::string> names = names_in(folder);
  return !find_files(names, subset, Kind::images).empty() || !find_files(names, subset, Kind::labels).empty();
}

DatasetPtr open_idx(const std::string& folder, Subset subset) {
  const std::vector<std::string> names = names_in(folder);
  const auto image_files = find_files(names, subset, Kind::images);
  if (image_files.empty()) {
    throw Error("idx", fmt::format("has no file {} (or .gz)", usual_name(subset, Kind::images))).at(folder);
  }
  if (image_files.size() > 1) {
    std::vector<std::string> found;
    for (const auto& [prefix, name] : image_files) found.push_back(name);
    throw Error("idx", fmt::format("has images of several sets: {}", fmt::join(found, ", ")),
                "give each set a folder of its own")
        .at(folder);
  }
  const auto& [prefix, image_file] = *image_files.begin();
  const auto label_files = find_files(names, subset, Kind::labels);
  const auto label_file = label_files.find(prefix);
  if (label_file == label_files.end()) {
    throw Error("idx", fmt::format("has {} but no file {}{} (or .gz)", image_file, prefix,
                                   usual_name(subset, Kind::labels)))
        .at(folder);
  }

  const std::string image_path = join(folder, image_file);
  const std::string label_path = join(folder, label_file->second);
  IdxFile images = read_idx(image_path, Kind::images);
  IdxFile labels = read_idx(label_path, Kind::labels);
  if (images.extents[0] != labels.extents[0]) {
    throw Error("idx", fmt::format("has {} labels, expected {}: as many as {} has images", labels.extents[0],
                                   images.extents[0], image_file))
        .at(label_path);
  }
  internal::MemoryImages memory;
  memory.size = {1, images.extents[1], images.extents[2]};
  memory.pixels = std::move(images.values);
  memory.labels = std::move(labels.values);
  memory.files = {image_path};
  memory.file_ends = {images.extents[0]};
  if (std::find(names.begin(), names.end(), "classes.txt") != names.end()) {
    memory.class_names = read_lines(join(folder, "classes.txt"));
  } else {
    memory.class_names =
        internal::numbered_classes(count_classes(folder, names, prefix, subset, memory.labels));
  }
  internal::check_labels("idx", memory);
  return internal::make_memory_dataset(std::move(memory));
}

}  // namespace purine::data
