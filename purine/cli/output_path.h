// Files that a command writes at its end.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace purine::cli {

/// A file that a command is to write, and the option that says so.
struct Output {
  std::string_view option;
  std::filesystem::path path;
};

/// Throws Error("command", …) that names command and option (`purine bench: --save …`) if a file could not be
/// written, so that a command that takes long does not begin in vain; if two are one file; or if one is of
/// the `inputs`, which the command reads. The files are left as they are.
void check_outputs(std::string_view command, std::span<const Output> outputs,
                   std::span<const std::filesystem::path> inputs = {});

}  // namespace purine::cli
