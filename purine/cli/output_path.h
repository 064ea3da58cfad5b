// Files that a command writes at its end.
#pragma once

#include <filesystem>
#include <string_view>

namespace purine::cli {

/// Throws Error("command", …) that names command and option (`purine bench: --save …`) if a file of this path
/// could not be written, so that a command that takes long does not begin in vain. The path is left as it is.
void check_output(std::string_view command, std::string_view option, const std::filesystem::path& path);

}  // namespace purine::cli
