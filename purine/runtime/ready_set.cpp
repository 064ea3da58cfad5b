#include "purine/runtime/ready_set.h"

namespace purine {

ReadySet::ReadySet(std::uint32_t size, std::uint32_t phases)
    : phases_(phases),
      leaf_words_(size / 64 + 1),
      middle_words_(leaf_words_ / 64 + 1),
      top_words_(middle_words_ / 64 + 1),
      leaves_(make_words(std::size_t{phases} * leaf_words_)),
      middles_(make_words(std::size_t{phases} * middle_words_)),
      tops_(make_words(std::size_t{phases} * top_words_)) {}

void ReadySet::insert_word(std::uint32_t phase, std::uint32_t word, std::uint64_t bits) {
  if (leaves_[std::size_t{phase} * leaf_words_ + word].fetch_or(bits) == 0) settle_middle(phase, word);
}

void ReadySet::settle_middle(std::uint32_t phase, std::uint32_t word) {
  const Word& leaf = leaves_[std::size_t{phase} * leaf_words_ + word];
  Word& middle = middles_[std::size_t{phase} * middle_words_ + word / 64];
  bool filled = leaf.load() != 0;
  while (true) {
    const std::uint64_t before = filled ? middle.fetch_or(bit(word)) : middle.fetch_and(~bit(word));
    const std::uint64_t after = filled ? before | bit(word) : before & ~bit(word);
    if ((before == 0) != (after == 0)) settle_top(phase, word / 64);
    const bool now = leaf.load() != 0;
    if (now == filled) return;
    filled = now;
  }
}

void ReadySet::settle_top(std::uint32_t phase, std::uint32_t word) {
  const Word& middle = middles_[std::size_t{phase} * middle_words_ + word];
  Word& top = tops_[std::size_t{phase} * top_words_ + word / 64];
  bool filled = middle.load() != 0;
  while (true) {
    if (filled) {
      top.fetch_or(bit(word));
    } else {
      top.fetch_and(~bit(word));
    }
    const bool now = middle.load() != 0;
    if (now == filled) return;
    filled = now;
  }
}

bool ReadySet::empty() const {
  for (std::uint32_t i = 0; i < phases_ * top_words_; ++i) {
    if (tops_[i].load() != 0) return false;
  }
  return true;
}

bool ReadySet::empty(std::uint32_t phase) const {
  for (std::uint32_t i = 0; i < top_words_; ++i) {
    if (tops_[phase * top_words_ + i].load() != 0) return false;
  }
  return true;
}

std::uint32_t ReadySet::find(std::uint32_t phase, std::uint32_t from) const {
  const Word* leaves = &leaves_[std::size_t{phase} * leaf_words_];
  const Word* middles = &middles_[std::size_t{phase} * middle_words_];
  const Word* tops = &tops_[std::size_t{phase} * top_words_];
  // Only what is at or after `from`, on each of the levels; all of it once a level has moved on.
  const auto at_or_after = [](std::uint32_t index) { return ~std::uint64_t{0} << (index % 64); };
  const std::uint32_t from_leaf = from / 64;
  const std::uint32_t from_middle = from_leaf / 64;
  for (std::uint32_t top = from_middle / 64; top < top_words_; ++top) {
    std::uint64_t top_bits = tops[top].load();
    if (top == from_middle / 64) top_bits &= at_or_after(from_middle);
    for (; top_bits != 0; top_bits &= top_bits - 1) {
      const std::uint32_t middle = top * 64 + static_cast<std::uint32_t>(std::countr_zero(top_bits));
      std::uint64_t middle_bits = middles[middle].load();
      if (middle == from_middle) middle_bits &= at_or_after(from_leaf);
      for (; middle_bits != 0; middle_bits &= middle_bits - 1) {
        const std::uint32_t leaf = middle * 64 + static_cast<std::uint32_t>(std::countr_zero(middle_bits));
        std::uint64_t leaf_bits = leaves[leaf].load();
        if (leaf == from_leaf) leaf_bits &= at_or_after(from);
        if (leaf_bits != 0) return leaf * 64 + static_cast<std::uint32_t>(std::countr_zero(leaf_bits));
      }
    }
  }
  return none;
}

bool ReadySet::take(std::uint32_t phase, std::uint32_t index) {
  const std::uint64_t before = leaves_[std::size_t{phase} * leaf_words_ + index / 64].fetch_and(~bit(index));
  if ((before & bit(index)) == 0) return false;
  if (before == bit(index)) settle_middle(phase, index / 64);
  return true;
}

}  // namespace purine
