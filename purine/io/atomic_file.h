// Files that are replaced as a whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "purine/io/file.h"

namespace purine::io {

/// Writes a file so that whoever reads its path sees the older content or all of the new, whatever happens: a
/// full disk, a kill at any moment, a power cut. Bytes go to a temporary file in the same folder; `commit`
/// puts them on the disk, renames the file and puts the folder on the disk. An object that goes without
/// `commit` removes its temporary file. Errors name the path that was to be written and the reason.
///
/// A path that is a symbolic link replaces the file that the link names. A path that exists and is no regular
/// file (a folder, a device, a pipe) is refused, since a rename would replace the thing itself.
class AtomicFile {
 public:
  /// Makes the temporary file; the folder must exist.
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Makes what was written the content of the path. Called once, last.
  void commit();

 private:
  void flush();

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  File file_;
  std::vector<std::byte> buffer_;
};

/// The whole of an atomic write.
void write_file(const std::filesystem::path& path, std::string_view content);

/// Removes the temporary files that killed processes left in a folder; those that a living process is
/// writing stay. Returns how many were removed.
std::size_t remove_leftovers(const std::filesystem::path& folder);

}  // namespace purine::io
