#include "purine/cli/output_path.h"

#include <fmt/format.h>

#include <system_error>

#include "purine/core/error.h"
#include "purine/io/atomic_file.h"

namespace purine::cli {
namespace {

namespace fs = std::filesystem;

// True also where neither is there yet.
bool are_one_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const auto resolved = [&](const fs::path& path) {
    return fs::weakly_canonical(fs::absolute(path, error), error);
  };
  const fs::path first = resolved(a);
  if (error) return false;
  const fs::path second = resolved(b);
  return !error && first == second;
}

}  // namespace

void check_outputs(std::string_view command, std::span<const Output> outputs,
                   std::span<const fs::path> inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    const auto fail = [&, &option = option, &path = path](std::string_view message, std::string_view hint) {
      throw Error("command", fmt::format("{} {}: {}", option, path.string(), message), hint).at(command);
    };
    for (const fs::path& input : inputs) {
      std::error_code error;  // one of them isn't there
      if (fs::equivalent(path, input, error)) fail("is what the command reads", "write to another file");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (!are_one_file(path, outputs[j].path)) continue;
      fail(fmt::format("is what {} writes", outputs[j].option), "write to another file");
    }
    try {
      const io::AtomicFile begun(path);  // its temporary file goes with it
    } catch (const Error& error) {
      fail(error.message(), error.hint());
    }
  }
}

}  // namespace purine::cli
