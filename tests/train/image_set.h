// A small data set on disk, for tests that train.
#pragma once

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>

#include "tests/support/plain_file.h"

namespace purine::test {

/// Writes the four files of MNIST's format: noise of `side` x `side` pixels, the labels 0 to 3 in turn, and
/// in the images of a label a bright row of its own.
inline void write_idx_set(const std::filesystem::path& folder, int training = 24, int test = 8,
                          int side = 20) {
  std::filesystem::create_directories(folder);
  const auto header = [](int dimensions, std::initializer_list<int> extents) {
    std::string text = {0, 0, 8, static_cast<char>(dimensions)};
    for (const int extent : extents) {
      for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(extent >> shift);
    }
    return text;
  };
  std::mt19937 noise(7);
  for (const auto& [name, count] : {std::pair{"train", training}, {"t10k", test}}) {
    std::string images = header(3, {count, side, side});
    std::string labels = header(1, {count});
    for (int i = 0; i < count; ++i) {
      labels += static_cast<char>(i % 4);
      for (int y = 0; y < side; ++y) {
        for (int x = 0; x < side; ++x) images += static_cast<char>(y % 4 == i % 4 ? 200 : noise() % 100);
      }
    }
    write_plain_file(folder / (std::string(name) + "-images-idx3-ubyte"), images);
    write_plain_file(folder / (std::string(name) + "-labels-idx1-ubyte"), labels);
  }
}

}  // namespace purine::test
