#include "purine/backend/emu/memory_map.h"

#include <mutex>

namespace purine::emu {

void MemoryMap::add(const std::byte* begin, std::size_t bytes, std::ptrdiff_t shift) {
  const std::lock_guard lock(mutex_);
  ranges_[begin] = {bytes, shift};
}

void MemoryMap::remove(const std::byte* begin) {
  const std::lock_guard lock(mutex_);
  ranges_.erase(begin);
}

std::byte* MemoryMap::accessible(std::byte* address) const {
  const std::shared_lock lock(mutex_);
  auto range = ranges_.upper_bound(address);
  if (range == ranges_.begin()) return address;
  --range;
  return address < range->first + range->second.bytes ? address + range->second.shift : address;
}

}  // namespace purine::emu
