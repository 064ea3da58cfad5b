// Metrics of a run for TensorBoard.
//
// An event file is a sequence of records, each: its length (8 bytes, little-endian), the masked CRC-32C of
// these 8 bytes, the data, the masked CRC-32C of the data (TensorFlow's "TFRecord"). The data is a message of
// the type Event of tensorboard/compat/proto/event.proto, of which scalars need four fields; they are encoded
// here by hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "purine/io/record_file.h"

namespace purine::io {

/// A value of a curve that TensorBoard shows under this tag: `train/loss`.
struct Scalar {
  std::string_view tag;
  float value = 0;
};

struct EventFileOptions {
  /// The first step that the run will write, if it goes on from a checkpoint: TensorBoard then drops what the
  /// folder's earlier files hold of that step and later ones.
  std::optional<std::int64_t> resumed_step = {};
  /// Seconds since 1970 of the file's name and first records; now if not given.
  std::optional<double> time = {};
};

/// Writes a new event file into a folder, beside those of earlier runs of the same curves: no file is ever
/// written by two writers. Records go out whole, in one call a flush, so a kill can cut only the last one,
/// which TensorBoard ignores. Errors name the file; records that can't be written go out with later ones (see
/// RecordFile).
class EventFileWriter {
 public:
  /// Makes `events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER` in the folder, which is made if there is none.
  explicit EventFileWriter(const std::filesystem::path& folder, const EventFileOptions& options = {});
  EventFileWriter(EventFileWriter&&) = default;
  EventFileWriter& operator=(EventFileWriter&&) = delete;
  /// Writes what is left; an error is lost then, so whoever cares calls flush before.
  ~EventFileWriter();

  const std::filesystem::path& path() const { return file_.path(); }

  /// Values of a step, at a time in seconds since 1970 (now if not given). Held in memory until 64 KiB have
  /// come together or flush is called.
  void write(std::int64_t step, std::span<const Scalar> scalars, std::optional<double> time = std::nullopt);
  /// Hands all records to the system, where TensorBoard sees them.
  void flush() { file_.flush(); }
  /// After a flush: true if the file has all records.
  bool is_whole() const { return file_.is_whole(); }

 private:
  void add_record(std::string_view event);

  RecordFile file_;
};

}  // namespace purine::io
