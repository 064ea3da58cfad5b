#include "purine/data/class_counts.h"

#include <fmt/format.h>

#include <algorithm>

#include "purine/core/amount_text.h"
#include "purine/core/one_line.h"

namespace purine::data {
namespace {

constexpr std::int64_t far = 100;       // times smaller than the median
constexpr std::size_t most_ranges = 5;  // and classes that are told one by one

// Ascending numbers as `3, 5 to 9`.
std::string ranges_text(const std::vector<std::size_t>& numbers) {
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (texts.size() == most_ranges) {
      texts.emplace_back("…");
      break;
    }
    texts.push_back(end == begin + 1 ? fmt::format("{}", numbers[begin])
                                     : fmt::format("{} to {}", numbers[begin], numbers[end - 1]));
    begin = end;
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string class_text(std::size_t label, const std::string& name) {
  const std::string number = std::to_string(label);
  return name == number ? "class " + number : fmt::format("class {} ({})", number, one_line(name));
}

}  // namespace

std::vector<std::int64_t> class_counts(const Dataset& dataset) {
  std::vector<std::int64_t> counts(dataset.class_names().size());
  for (std::int64_t i = 0; i < dataset.size(); ++i) ++counts[static_cast<std::size_t>(dataset.label(i))];
  return counts;
}

std::vector<std::string> doubts_about(std::span<const std::string> class_names,
                                      std::span<const std::int64_t> counts) {
  std::vector<std::string> doubts;
  std::vector<std::size_t> empty;
  std::vector<std::int64_t> filled;
  for (std::size_t label = 0; label < counts.size(); ++label) {
    if (counts[label] == 0) empty.push_back(label);
    if (counts[label] > 0) filled.push_back(counts[label]);
  }
  if (filled.empty()) return doubts;
  if (!empty.empty()) {
    doubts.push_back(fmt::format("{} of {} classes {} no image: {}", empty.size(), counts.size(),
                                 empty.size() == 1 ? "has" : "have", ranges_text(empty)));
  }
  const auto middle = filled.begin() + static_cast<std::ptrdiff_t>(filled.size() / 2);
  std::nth_element(filled.begin(), middle, filled.end());
  std::size_t small = 0;
  for (std::size_t label = 0; label < counts.size(); ++label) {
    if (counts[label] == 0 || counts[label] > *middle / far || ++small > most_ranges) continue;
    doubts.push_back(fmt::format("{} has {}, and half of the classes have {} or more",
                                 class_text(label, class_names[label]), counted_text(counts[label], "image"),
                                 *middle));
  }
  if (small > most_ranges) {
    doubts.push_back(fmt::format("{} more classes are as small", small - most_ranges));
  }
  return doubts;
}

}  // namespace purine::data
