// Files read whole, as they are or decompressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace purine::data {

/// Reads a regular file into `bytes`, whose storage is used again. Throws Error("file", reason) without a
/// path where it can't be read.
void read_file(const std::string& path, std::vector<std::byte>& bytes);

/// The lines of a text file without their ends, and without trailing blank lines. Throws
/// Error("file", reason) with the path.
std::vector<std::string> read_lines(const std::string& path);

/// Reads a file from its beginning, decompressing it where it is gzip's. Errors are Error("file", reason)
/// without a path.
class InflatingReader {
 public:
  explicit InflatingReader(const std::string& path);
  InflatingReader(const InflatingReader&) = delete;
  InflatingReader& operator=(const InflatingReader&) = delete;
  ~InflatingReader();

  /// Reads up to `bytes.size()` bytes and returns how many there were; fewer only at the end. A compressed
  /// file that is damaged throws; one that is cut short just ends.
  std::size_t read(std::span<std::uint8_t> bytes);
  /// Throws unless all has been read, and compressed data was complete.
  void expect_end();

 private:
  void* file_;  // zlib's gzFile
};

}  // namespace purine::data
