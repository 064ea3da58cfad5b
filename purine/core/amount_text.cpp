#include "purine/core/amount_text.h"

#include <fmt/format.h>

#include <iterator>

namespace purine {

std::string count_text(std::int64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t i = text.size(); i > 3 + (count < 0 ? 1u : 0u);) text.insert(i -= 3, ",");
  return text;
}

std::string counted_text(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count_text(count), noun, count == 1 ? "" : "s");
}

std::string bytes_text(std::size_t bytes) {
  static constexpr const char* units[] = {"bytes", "kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} {}", bytes, units[0]);
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit < 3 ? 1 : 2, units[unit]);
}

}  // namespace purine
