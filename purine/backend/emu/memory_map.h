// Which addresses are emulated devices' memory.
#pragma once

#include <cstddef>
#include <map>
#include <shared_mutex>

namespace purine::emu {

/// The memory of the emulated devices that can copy from and to one another: one for all devices of a
/// runtime.
class MemoryMap {
 public:
  /// The bytes named from `begin` on can be reached `shift` bytes behind.
  void add(const std::byte* begin, std::size_t bytes, std::ptrdiff_t shift);
  void remove(const std::byte* begin);
  /// Where the bytes that an address names can be reached: for a device's memory its second mapping, for any
  /// other address (the host's) that address.
  std::byte* accessible(std::byte* address) const;

 private:
  struct Range {
    std::size_t bytes = 0;
    std::ptrdiff_t shift = 0;
  };
  mutable std::shared_mutex mutex_;
  std::map<const std::byte*, Range> ranges_;
};

}  // namespace purine::emu
