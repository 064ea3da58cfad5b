#include "purine/train/run_folder.h"

#include <sys/file.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "purine/core/error.h"

namespace purine::train {
namespace {

namespace fs = std::filesystem;

Error folder_error(const fs::path& folder, std::string_view message, std::string_view hint = {}) {
  return Error("run folder", message, hint).at(folder.string());
}

Error exists_error(const fs::path& folder) {
  return folder_error(folder, "exists already",
                      "go on with its run (--resume), or take another folder (--new-run, --run-folder)");
}

// False if there is something of this name already.
bool make(const fs::path& folder) {
  if (folder.has_parent_path()) io::make_folder(folder.parent_path());
  std::error_code error;
  if (fs::create_directory(folder, error)) return true;
  if (!error || error == std::errc::file_exists) return false;
  throw folder_error(folder, "cannot be made: " + error.message());
}

}  // namespace

fs::path RunPaths::free_trace(std::int64_t resumed_step) const {
  const std::string stem = resumed_step == 0 ? "trace" : "trace-from-step-" + std::to_string(resumed_step);
  std::error_code error;
  fs::path path = folder / (stem + ".json");
  for (int number = 2; fs::exists(path, error); ++number) {
    path = folder / (stem + "-" + std::to_string(number) + ".json");
  }
  return path;
}

RunFolder::RunFolder(fs::path folder)
    : paths_{std::move(folder)}, lock_(io::File::open_to_read(paths_.folder)) {
  // Some network file systems know no locks; there the user takes care.
  if (::flock(lock_.descriptor(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw folder_error(paths_.folder, "is being written by another process", "wait for it, or end it");
  }
}

void RunFolder::check_absent(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder, error))) throw exists_error(folder);
}

RunFolder RunFolder::create(const fs::path& folder) {
  if (!make(folder)) throw exists_error(folder);
  return RunFolder(folder);
}

RunFolder RunFolder::create_numbered(const fs::path& folder) {
  fs::path candidate = folder;
  for (int number = 2; !make(candidate); ++number) {
    candidate = folder;
    candidate += "-" + std::to_string(number);
  }
  return RunFolder(candidate);
}

RunFolder RunFolder::open(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw folder_error(folder, "does not exist, so there is no run to go on with",
                       "start one without --resume");
  }
  return RunFolder(folder);
}

}  // namespace purine::train
