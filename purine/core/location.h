// Where a vertex lies: host and device.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace purine {

enum class DeviceKind : std::uint8_t { cpu, cuda, emu, sim };

/// `cpu`, `cuda`, `emu`, `sim`.
std::string_view name_of(DeviceKind kind);

/// Host (its rank among the processes) and device of a vertex, written `0/cpu:0`.
struct Location {
  std::int32_t rank = 0;
  DeviceKind kind = DeviceKind::cpu;
  std::int32_t index = 0;

  /// Reads `2/cuda:1`, or `cuda:1` for rank 0; anything else throws Error.
  static Location parse(std::string_view text);
  std::string text() const;
  auto operator<=>(const Location& other) const = default;
};

}  // namespace purine
