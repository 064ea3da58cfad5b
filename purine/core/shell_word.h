// Names of files in commands that a user is to copy.
#pragma once

#include <string>
#include <string_view>

namespace purine {

/// The text as one word of a command line: between quotes where the shell would take it apart, as `$'a\nb'`
/// where it has control characters, and with `./` before a first `-`, so that it is no option.
std::string shell_word(std::string_view text);

}  // namespace purine
