#include "purine/core/nearest.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace purine {
namespace {

std::string folded(std::string_view word) {
  std::string text(word);
  for (char& c : text) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The words between the underscores.
std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  while (!name.empty()) {
    const std::size_t length = std::min(name.find('_'), name.size());
    if (length > 0) parts.push_back(name.substr(0, length));
    name.remove_prefix(std::min(length + 1, name.size()));
  }
  return parts;
}

bool has_all(const std::vector<std::string_view>& parts, const std::vector<std::string_view>& of) {
  return std::all_of(of.begin(), of.end(), [&](std::string_view part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  });
}

bool are_related(std::string_view word, std::string_view candidate) {
  const std::vector<std::string_view> parts = parts_of(word);
  const std::vector<std::string_view> parts_of_candidate = parts_of(candidate);
  if (parts.empty() || parts_of_candidate.empty()) return false;
  if (has_all(parts, parts_of_candidate) || has_all(parts_of_candidate, parts)) return true;
  std::string initials;
  for (const std::string_view part : parts_of_candidate) initials += part.front();
  return initials.size() > 1 && word == initials;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows i - 2, i - 1 and i of the table of distances between the first i letters of a and the first j of b.
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t most_edits = 3;
  const std::string wanted = folded(word);
  std::size_t fewest = most_edits + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, folded(candidate));
    const std::size_t allowed = std::max<std::size_t>(1, std::max(word.size(), candidate.size()) / 3);
    if (distance < fewest && distance <= allowed) {
      fewest = distance;
      best = candidate;
    }
  }
  if (!best.empty()) return best;
  const auto related = std::find_if(candidates.begin(), candidates.end(), [&](const std::string& candidate) {
    return are_related(wanted, folded(candidate));
  });
  return related != candidates.end() ? *related : best;
}

}  // namespace purine
