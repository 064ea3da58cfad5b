#include "purine/cli/output_path.h"

#include <fmt/format.h>

#include "purine/core/error.h"
#include "purine/io/atomic_file.h"

namespace purine::cli {

void check_output(std::string_view command, std::string_view option, const std::filesystem::path& path) {
  try {
    const io::AtomicFile begun(path);  // its temporary file goes with it
  } catch (const Error& error) {
    throw Error("command", fmt::format("{} {}: {}", option, path.string(), error.message()), error.hint())
        .at(command);
  }
}

}  // namespace purine::cli
