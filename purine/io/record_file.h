// A file of records that are written one after the other, where a disk that is full for a while loses none.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "purine/io/file.h"

namespace purine::io {

/// Appends records to a file, each whole or not at all. What can't be written is held in memory and goes out
/// with what comes later; of more than a megabyte that waits so nothing is kept.
class RecordFile {
 public:
  /// Records that wait to be written are no more than this many bytes.
  static constexpr std::size_t most_held = 1'000'000;

  RecordFile() = default;
  explicit RecordFile(File file) : file_(std::move(file)) {}

  const std::filesystem::path& path() const { return file_.path(); }
  bool is_open() const { return file_.is_open(); }

  /// Holds a record until the next flush.
  void add(std::string_view record) { held_ += record; }
  /// Bytes of records that are not in the file.
  std::size_t held() const { return held_.size(); }
  /// Hands all records to the system, by one call. Throws Error naming the file.
  void flush();
  /// Flushes, and waits until all records are on the disk.
  void sync();
  /// True if the file has all records: none waits, and none is lost.
  bool is_whole() const { return held_.empty() && !has_lost_; }

 private:
  File file_;
  std::string held_;
  bool has_lost_ = false;
};

}  // namespace purine::io
