// Text for whoever reads along, who may go away.
#pragma once

#include <cstdio>
#include <string_view>

namespace purine::io {

/// Writes to an open stream at once. What can't be written is lost, and so is all that follows: never an
/// exception, since the work that is reported on matters more than the report. A writer that should live when
/// the reader of a pipe goes away ignores SIGPIPE.
class TextOutput {
 public:
  explicit TextOutput(std::FILE* file) : file_(file) {}
  virtual ~TextOutput() = default;

  /// Writes the text, after what the stream holds already.
  virtual void write(std::string_view text);
  /// Everything is written, or could not be, when it returns.
  virtual void flush() {}
  /// Columns of the terminal; 80 if it is none, or doesn't say.
  int columns() const;

  /// The errno of the write that failed; 0 if none did.
  int error_number() const { return error_number_; }
  /// True if it failed because nobody reads: the pipe's reader or the terminal is gone, or the stream was
  /// closed from the start.
  bool nobody_reads() const;

 protected:
  void set_error_number(int number) { error_number_ = number; }

 private:
  std::FILE* file_;
  int error_number_ = 0;
};

}  // namespace purine::io
