// Metrics of a run as JSON lines: one object a line, for scripts and tables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "purine/io/file.h"
#include "purine/io/record_file.h"

namespace purine::io {

/// A number keeps its exact value: it reads back as the same number of its type. Those that are not finite
/// are written as texts (see json_number).
using MetricValue = std::variant<std::int64_t, float, double, std::string>;

/// Throws Error if a whole line of a metrics file's content is no record, which is an object with a whole
/// number `step`; a last line that a kill cut is none.
void check_metrics(std::string_view content);

struct Metric {
  std::string_view name;
  MetricValue value;
};

/// Writes `{"step":12,"loss":0.25,"phase":"train"}`, a line a record. Each record is handed to the system at
/// once, by one call, so a kill loses nothing that was written and can cut the last line only. Errors name
/// the file; a record that can't be written goes out with a later one (see RecordFile).
class MetricsWriter {
 public:
  /// Makes a new file; one that exists is an Error.
  static MetricsWriter create(const std::filesystem::path& path);
  /// Goes on with the file of a run that is resumed: what follows the first record whose step is `step` or
  /// later is cut away with it, and so is a last line that a kill cut. A whole line that is no record throws
  /// Error, and the file stays as it was. Without a file, a new one is made. `also` is a text of records of
  /// the step before `step` that are cut away as well, with what follows them.
  static MetricsWriter resume(const std::filesystem::path& path, std::int64_t step,
                              const std::optional<Metric>& also = {});

  /// Appends a record. A name that comes twice or is `step` throws Error.
  void write(std::int64_t step, std::span<const Metric> metrics);
  void write(std::int64_t step, std::initializer_list<Metric> metrics) {
    write(step, std::span(metrics.begin(), metrics.size()));
  }
  /// Waits until all records are on the disk.
  void sync() { file_.sync(); }
  /// True if the file has all records that were written.
  bool is_whole() const { return file_.is_whole(); }

 private:
  explicit MetricsWriter(File file) : file_(std::move(file)) {}

  RecordFile file_;
};

}  // namespace purine::io
