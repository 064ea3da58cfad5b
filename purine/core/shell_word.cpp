#include "purine/core/shell_word.h"

#include <algorithm>

#include "purine/core/one_line.h"

namespace purine {

std::string shell_word(std::string_view text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=+@%";
  const std::string word = (text.starts_with('-') ? "./" : "") + std::string(text);
  const auto is_safe = [&](char c) {
    return plain.find(c) != std::string_view::npos || static_cast<unsigned char>(c) >= 0x80;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_safe)) return word;
  // Within $'…' the shell reads backslashes as one_line writes them.
  const bool has_control = one_line(word) != word;
  std::string quoted = has_control ? "$'" : "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += has_control ? "\\'" : "'\\''";
    } else if (c == '\\' && has_control) {
      quoted += "\\\\";
    } else {
      quoted += c;
    }
  }
  return one_line(quoted) + '\'';
}

}  // namespace purine
