// What is wrong with JSON, in words for whoever named the file.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace purine {

/// Of a text that should be JSON, and what the parser threw: `is not JSON (line 3, column 7)`. What was
/// thrown at JSON that is well formed but is not what the reader expects: `cannot be read: key 'ts' not
/// found`.
std::string json_problem(std::string_view text, const std::exception& error);

}  // namespace purine
