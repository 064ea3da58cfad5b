#include "purine/core/shell_word.h"

namespace purine {

std::string shell_word(std::string_view text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=+@%";
  std::string word = text.starts_with('-') ? "./" : "";
  const auto is_safe = [&](char c) {
    return plain.find(c) != std::string_view::npos || static_cast<unsigned char>(c) >= 0x80;
  };
  bool is_plain = !text.empty();
  for (const char c : text) is_plain = is_plain && is_safe(c);
  if (is_plain) return word.append(text);
  word.insert(0, "'");
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + '\'';
}

}  // namespace purine
