#include "purine/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace purine::io {
namespace {

int open_retrying(const std::filesystem::path& path, int flags) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

}  // namespace

Error system_error(const std::filesystem::path& path, std::string_view action, int error_number,
                   std::string_view hint) {
  const std::string reason = std::generic_category().message(error_number);
  return Error("file", "cannot " + std::string(action) + ": " + reason, hint).at(path.string());
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

File File::open_to_read(const std::filesystem::path& path) {
  const int descriptor = open_retrying(path, O_RDONLY);
  if (descriptor < 0) throw system_error(path, "open", errno);
  return File(descriptor, path);
}

File File::open_to_append(const std::filesystem::path& path) {
  const int descriptor = open_retrying(path, O_WRONLY | O_APPEND | O_CREAT);
  if (descriptor < 0) throw system_error(path, "open", errno);
  return File(descriptor, path);
}

File File::create_new(const std::filesystem::path& path, const std::filesystem::path& shown_path) {
  const std::filesystem::path& shown = shown_path.empty() ? path : shown_path;
  const int descriptor = open_retrying(path, O_WRONLY | O_CREAT | O_EXCL);
  if (descriptor < 0) {
    const int reason = errno;
    if (reason == EEXIST) return {};
    const std::filesystem::path folder = path.parent_path();
    std::error_code ignored;
    const bool no_folder = reason == ENOENT && !folder.empty() && !std::filesystem::exists(folder, ignored);
    throw system_error(shown, "create", reason,
                       no_folder ? "there is no folder " + folder.string() : std::string());
  }
  return File(descriptor, shown);
}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (is_open()) ::close(descriptor_);
}

std::uint64_t File::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) throw system_error(path_, "read the size", errno);
  return static_cast<std::uint64_t>(status.st_size);
}

std::size_t File::read(std::span<std::byte> buffer) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t count = ::read(descriptor_, buffer.data() + done, buffer.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(path_, "read", errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

void File::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(path_, "write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void File::append(std::span<const std::byte> bytes) {
  const std::uint64_t before = size();
  try {
    write(bytes);
  } catch (const Error&) {
    // A failure of these calls would only hide the cause, and leaves what a failed write leaves anyway. The
    // next write is to go on at the end, not behind what is cut away.
    [[maybe_unused]] const int cut = ::ftruncate(descriptor_, static_cast<off_t>(before));
    [[maybe_unused]] const off_t end = ::lseek(descriptor_, static_cast<off_t>(before), SEEK_SET);
    throw;
  }
}

void File::resize(std::uint64_t bytes) {
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) throw system_error(path_, "shorten", errno);
}

void File::sync() {
  // Pipes and some special files have nothing to sync and say EINVAL.
  if (::fsync(descriptor_) != 0 && errno != EINVAL) throw system_error(path_, "write to the disk", errno);
}

void File::close() {
  if (!is_open()) return;
  // After close the descriptor is gone whatever it returns, so it is never closed twice.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) {
    throw system_error(path_, "close", errno);
  }
}

std::string read_file(const std::filesystem::path& path) {
  File file = File::open_to_read(path);
  std::string content;
  std::size_t wanted = static_cast<std::size_t>(file.size()) + 1;  // one more, to see that it ends there
  for (;;) {
    const std::size_t before = content.size();
    content.resize(before + wanted);
    const std::size_t count = file.read(std::as_writable_bytes(std::span(content).subspan(before)));
    content.resize(before + count);
    if (count < wanted) return content;
    wanted = 65536;  // it grew, or its size isn't known (a pipe)
  }
}

void sync_folder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder.empty() ? std::filesystem::path(".") : folder;
  const int descriptor = open_retrying(path, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) throw system_error(path, "open", errno);
  const int result = ::fsync(descriptor);
  const int reason = errno;
  ::close(descriptor);
  if (result != 0 && reason != EINVAL) throw system_error(path, "write to the disk", reason);
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(folder, error);
  if (error) throw system_error(folder, "make the folder", error.value());
  if (made) sync_folder(folder.parent_path());
}

}  // namespace purine::io
