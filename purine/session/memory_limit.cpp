#include "purine/session/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "purine/core/error.h"

namespace purine {
namespace {

std::optional<std::size_t> read_number(const std::string& file) {
  std::ifstream stream(file);
  std::size_t number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

std::string gibibytes(std::size_t bytes) {
  const std::size_t tenths = bytes * 10 / (std::size_t{1} << 30U);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

}  // namespace

std::size_t available_memory() {
  std::size_t available = std::numeric_limits<std::size_t>::max();
  std::ifstream meminfo("/proc/meminfo");
  std::string word;
  while (meminfo >> word) {
    std::size_t kibibytes = 0;
    if (word == "MemAvailable:" && meminfo >> kibibytes) available = kibibytes * 1024;
  }
  const auto limit = read_number("/sys/fs/cgroup/memory.max");
  const auto used = read_number("/sys/fs/cgroup/memory.current");
  if (limit && used) available = std::min(available, *limit - std::min(*limit, *used));
  return available;
}

void check_memory(std::size_t needed) {
  const std::size_t available = available_memory();
  if (needed > available) {
    throw Error("memory",
                "the program needs " + gibibytes(needed) + ", " + gibibytes(available) + " are available",
                "use a smaller batch or model");
  }
}

}  // namespace purine
