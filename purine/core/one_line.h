// Names of files and classes, which can hold anything, for output in lines.
#pragma once

#include <string>
#include <string_view>

namespace purine {

/// The text with its control characters written out, as `\n`, `\t`, `\r` or `\x1b`: it stays one line and
/// moves no cursor. Everything else is as it was.
std::string one_line(std::string_view text);

}  // namespace purine
