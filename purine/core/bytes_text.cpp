#include "purine/core/bytes_text.h"

#include <fmt/format.h>

#include <iterator>

namespace purine {

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
