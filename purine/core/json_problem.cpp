#include "purine/core/json_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace purine {

std::string json_problem(std::string_view text, const std::exception& error) {
  if (const auto* parsing = dynamic_cast<const nlohmann::json::parse_error*>(&error)) {
    if (text.empty()) return "is empty, and so is not JSON";
    // The parser counts bytes from 1; at a text's end it names the byte behind the last.
    const std::size_t at = std::clamp<std::size_t>(parsing->byte, 1, text.size()) - 1;
    const std::string_view before = text.substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
    return fmt::format("is not JSON (line {}, column {})", line, at - line_begin + 1);
  }
  // `[json.exception.out_of_range.403] key 'ts' not found`
  std::string_view problem = error.what();
  if (problem.starts_with("[json.")) problem.remove_prefix(std::min(problem.find("] ") + 2, problem.size()));
  return fmt::format("cannot be read: {}", problem);
}

}  // namespace purine
