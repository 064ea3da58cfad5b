// The operators that are ready on a lane, ordered by priority.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace purine {

/// Sets of indices 0 … size - 1, one set a phase, that any number of threads insert into and take from
/// without locks. Each is a bitmap with two summaries above it, so inserting is constant-time, and the first
/// index is found in three words (and one more per 262,144 indices).
///
/// Invariant: whenever no insert or take is in progress, a summary bit is set iff the word it stands for is
/// not zero. Whoever fills an empty word or empties one writes its summary bit afterwards, looks at the word
/// again after that, and starts over if it has changed. So the last write of a bit was followed by a look
/// that agreed with it, and a change after that look would have been followed by another write. A reader may
/// miss an index only while another thread is on its way to make it visible, and that thread notifies
/// afterwards (see IdleWorkers).
class ReadySet {
 public:
  static constexpr std::uint32_t none = 0xffffffffU;

  ReadySet(std::uint32_t size, std::uint32_t phases);

  void insert(std::uint32_t phase, std::uint32_t index) { insert_word(phase, index / 64, bit(index)); }
  /// Inserts 64 * word + i for every bit i that is set; `bits` is not zero.
  void insert_word(std::uint32_t phase, std::uint32_t word, std::uint64_t bits);
  /// True if no index is visible in any phase.
  bool empty() const;
  /// True if no index is visible in this phase.
  bool empty(std::uint32_t phase) const;
  /// The smallest index of a phase that is not below `from`, or `none`.
  std::uint32_t find(std::uint32_t phase, std::uint32_t from = 0) const;
  /// Removes an index; false if another thread was faster.
  bool take(std::uint32_t phase, std::uint32_t index);

 private:
  using Word = std::atomic<std::uint64_t>;
  static std::uint64_t bit(std::uint32_t index) { return std::uint64_t{1} << (index % 64); }
  static std::unique_ptr<Word[]> make_words(std::size_t count) { return std::make_unique<Word[]>(count); }
  /// Makes the summary bit of a leaf, or of a word of the middle level, agree with it.
  void settle_middle(std::uint32_t phase, std::uint32_t word);
  void settle_top(std::uint32_t phase, std::uint32_t word);

  std::uint32_t phases_;
  std::uint32_t leaf_words_;    // a phase
  std::uint32_t middle_words_;  // a phase
  std::uint32_t top_words_;     // a phase
  std::unique_ptr<Word[]> leaves_;
  std::unique_ptr<Word[]> middles_;
  std::unique_ptr<Word[]> tops_;
};

}  // namespace purine
