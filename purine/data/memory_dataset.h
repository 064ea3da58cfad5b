// A dataset whose images are all of one size and lie in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "purine/data/dataset.h"

namespace purine::data::internal {

/// Images of 8 bits, channels interleaved, one behind the other, and a label each.
struct MemoryImages {
  ImageSize size;
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
  std::vector<std::string> class_names;
  /// The files the samples come from, in order, and the samples before the end of each.
  std::vector<std::string> files;
  std::vector<std::int64_t> file_ends;
};

/// Names every label below the largest one present, in decimal.
std::vector<std::string> numbered_classes(std::int64_t count);

/// Throws Error(component, …) with the file's path where a label has no class.
void check_labels(std::string_view component, const MemoryImages& images);

DatasetPtr make_memory_dataset(MemoryImages images);

/// Whether a folder has any file of a subset, by its name; false for a folder that can't be read.
bool has_idx(const std::string& folder, Subset subset);
bool has_cifar10(const std::string& folder, Subset subset);
bool has_cifar100(const std::string& folder, Subset subset);

}  // namespace purine::data::internal
