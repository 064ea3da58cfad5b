// Files written without care for the disk: quick, for tests that write thousands.
#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

#include "purine/core/error.h"

namespace purine::test {

/// Makes or replaces a file. The older one is removed first: some file systems put a file that is cut to
/// nothing and written again on the disk at once.
inline void write_plain_file(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  PURINE_CHECK(file.good());
}

}  // namespace purine::test
