// Amounts of memory and of data, for people.
#pragma once

#include <cstddef>
#include <string>

namespace purine {

/// `999 bytes`, `23.4 MB`, `1.65 GB`: in units of 1,000.
std::string bytes_text(std::size_t bytes);

}  // namespace purine
