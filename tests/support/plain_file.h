// Files written without care for the disk: quick, for tests that write thousands.
#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

#include "purine/core/error.h"

namespace purine::test {

/// Makes or replaces a file.
inline void write_plain_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  PURINE_CHECK(file.good());
}

}  // namespace purine::test
