// Files of the operating system, with errors that name them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "purine/core/error.h"

namespace purine::io {

/// The error of a failed system call: `[file] runs/a.bin: cannot write: No space left on device`.
Error system_error(const std::filesystem::path& path, std::string_view action, int error_number,
                   std::string_view hint = {});

/// What a function returns; an error of its own, or of the layers below, names the file.
template <typename Function>
auto with_path(const std::filesystem::path& path, Function&& function) {
  try {
    return function();
  } catch (const Error& error) {
    throw error.at(path.string());
  }
}

/// The bytes of a text, for the functions that take bytes.
std::span<const std::byte> bytes_of(std::string_view text);

/// An open file, closed when the object goes. Every function throws Error naming the file and the reason.
/// Interrupted and partial calls are continued, so a read or write is whole or an error.
class File {
 public:
  /// Opens a file that exists.
  static File open_to_read(const std::filesystem::path& path);
  /// Opens a file for writing at its end; makes it if there is none.
  static File open_to_append(const std::filesystem::path& path);
  /// Makes a file for writing. Returns one that is not open if a file of this path exists. Errors show
  /// `shown_path` instead of the path, if it is given.
  static File create_new(const std::filesystem::path& path, const std::filesystem::path& shown_path = {});

  File() = default;
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }

  /// Bytes in the file now.
  std::uint64_t size() const;
  /// Reads until the buffer is full or the file ends; returns the bytes read.
  std::size_t read(std::span<std::byte> buffer);
  /// Writes all bytes.
  void write(std::span<const std::byte> bytes);
  /// Writes all bytes at the end or, if that fails, none: the part that was written is cut away again.
  void append(std::span<const std::byte> bytes);
  /// Cuts the file to this many bytes.
  void resize(std::uint64_t bytes);
  /// Waits until the content is on the disk.
  void sync();
  void close();

 private:
  File(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_ = -1;
  std::filesystem::path path_;
};

/// The whole content of a file.
std::string read_file(const std::filesystem::path& path);
/// Waits until the entries of a folder (files made, renamed, removed) are on the disk.
void sync_folder(const std::filesystem::path& folder);
/// Makes a folder with those above it, where they don't exist.
void make_folder(const std::filesystem::path& folder);

}  // namespace purine::io
