// A hash map between numbers, in one piece of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace purine {

/// Values by keys; it only grows. A look-up in a large one costs one cache miss, where a map of nodes costs
/// three, and an entry takes 21 to 43 bytes. Any key will do but the largest number.
class NumberMap {
 public:
  /// Null if there is none of this key. Valid until the next one is added.
  const std::uint32_t* find(std::uint64_t key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place(key)];
    return slot.key == key ? &slot.value : nullptr;
  }

  /// The value of a key; 0 if it is new. Valid until the next one is added.
  std::uint32_t& operator[](std::uint64_t key) {
    if (slots_.empty()) grow();
    std::size_t at = place(key);
    if (slots_[at].key != key) {
      if ((size_ + 1) * 4 > slots_.size() * 3) {
        grow();
        at = place(key);
      }
      slots_[at].key = key;
      ++size_;
    }
    return slots_[at].value;
  }

  std::size_t size() const { return size_; }

 private:
  static constexpr std::uint64_t empty = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = empty;
    std::uint32_t value = 0;
  };

  /// Where a key is, or the free slot where it would be.
  std::size_t place(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::uint64_t hash = key * 0x9e3779b97f4a7c15U;
    hash = (hash ^ (hash >> 32U)) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32U;
    std::size_t at = hash & mask;
    while (slots_[at].key != key && slots_[at].key != empty) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> before(slots_.empty() ? 16 : slots_.size() * 2);
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.key != empty) slots_[place(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two
  std::size_t size_ = 0;
};

}  // namespace purine
