#include <fmt/format.h>

#include <algorithm>

#include "purine/train/job_keys.h"

namespace purine::train {
namespace {

std::string default_text(const JobKey& key) {
  return key.required ? "required" : job_value_text(key.default_value());
}

// What it means, and with which values of another key.
std::string whole_help(const JobKey& key) {
  return key.only_with ? fmt::format("{} Only with `{}`.", key.help, key.only_with->text()) : key.help;
}

// Text in lines of at most `columns`, each after the first behind `indent` spaces.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string result;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (column > indent && column + 1 + word.size() > columns) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

}  // namespace

std::string job_reference() {
  std::string text;
  std::string_view section;
  for (const JobKey& key : job_keys()) {
    if (key.section != section) {
      section = key.section;
      text += fmt::format("{}### `[{}]`\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
                          text.empty() ? "" : "\n", section);
    }
    std::string value(key.type());
    if (const std::string allowed = key.allowed(); !allowed.empty()) {
      value = key.choices.empty() ? value + ", " + allowed : allowed;
    }
    const std::string default_value = default_text(key);
    text += fmt::format("| `{}` | {} | {} | {} |\n", key.name, value,
                        key.required ? default_value : "`" + default_value + "`", whole_help(key));
  }
  return text;
}

std::string job_help(std::size_t columns) {
  std::string text;
  std::string_view section;
  for (const JobKey& key : job_keys()) {
    if (key.section != section) {
      section = key.section;
      text += fmt::format("[{}]\n", section);
    }
    std::string help = whole_help(key);
    std::erase(help, '`');
    const std::string allowed = key.allowed();
    help += fmt::format(" ({}{}{}; {}{})", key.choices.empty() ? key.type() : "one of",
                        allowed.empty()       ? ""
                        : key.choices.empty() ? ", "
                                              : " ",
                        allowed, key.required ? "" : "default ", default_text(key));
    constexpr std::size_t indent = 23;
    const std::string name = key.name.size() + 3 > indent ? key.name + "\n" + std::string(indent - 1, ' ')
                                                          : fmt::format("{:<20}", key.name);
    text += fmt::format("  {} {}\n", name, wrapped(help, indent, columns));
  }
  return text;
}

}  // namespace purine::train
