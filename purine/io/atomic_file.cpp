#include "purine/io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace purine::io {
namespace {

constexpr std::size_t buffer_bytes = 1U << 18;

/// The path to rename onto: the one behind a symbolic link.
std::filesystem::path resolve(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (error && status.type() != std::filesystem::file_type::not_found) {
    throw system_error(path, "look at the file", error.value());
  }
  if (status.type() == std::filesystem::file_type::not_found) return path;
  if (status.type() != std::filesystem::file_type::regular) {
    throw Error("file", "is not a regular file, so it cannot be replaced",
                "write to a path that is free or that names an ordinary file")
        .at(path.string());
  }
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path behind = std::filesystem::canonical(path, error);
  if (error) throw system_error(path, "follow the link", error.value());
  return behind;
}

std::string temporary_name(const std::filesystem::path& target, int number) {
  return "." + target.filename().string() + ".purine-" + std::to_string(::getpid()) + "-" +
         std::to_string(number) + ".tmp";
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with('.') && name.ends_with(".tmp") && name.find(".purine-") != std::string_view::npos;
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path) : target_(resolve(path)) {
  // The lock tells remove_leftovers that somebody is at work on the file. A cleaner may have come between the
  // making and the locking: then the file has no name any more, and another one is made.
  for (int number = 0;; ++number) {
    temporary_ = target_.parent_path() / temporary_name(target_, number);
    file_ = File::create_new(temporary_, path);
    if (!file_.is_open()) continue;
    struct stat status {};
    const bool locked = ::flock(file_.descriptor(), LOCK_EX) == 0;
    if (!locked || ::fstat(file_.descriptor(), &status) != 0 || status.st_nlink > 0) return;
  }
}

AtomicFile::~AtomicFile() {
  if (file_.is_open()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > buffer_bytes) flush();
  if (bytes.size() > buffer_bytes) {
    file_.write(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void AtomicFile::write(std::string_view text) {
  write(bytes_of(text));
}

void AtomicFile::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

void AtomicFile::commit() {
  flush();
  file_.sync();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    throw system_error(file_.path(), "replace", errno);
  }
  File written = std::move(file_);
  sync_folder(target_.parent_path());
  written.close();
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

std::size_t remove_leftovers(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  std::size_t removed = 0;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::filesystem::path path = entries->path();
    if (!is_temporary_name(path.filename().string())) continue;
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) continue;  // just renamed or removed by its writer, or not ours
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0 && ::unlink(path.c_str()) == 0) ++removed;
    ::close(descriptor);
  }
  if (error) throw system_error(folder, "list the folder", error.value());
  return removed;
}

}  // namespace purine::io
