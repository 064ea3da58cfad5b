// Amounts, for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace purine {

/// `1,234,567`.
std::string count_text(std::int64_t count);
/// `1 step`, `1,234 steps`: the noun takes an s where there are not one of it.
std::string counted_text(std::int64_t count, std::string_view noun);
/// `999 bytes`, `23.4 MB`, `1.65 GB`: in units of 1,000.
std::string bytes_text(std::size_t bytes);

}  // namespace purine
