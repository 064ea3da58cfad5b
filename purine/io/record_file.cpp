#include "purine/io/record_file.h"

#include "purine/core/error.h"

namespace purine::io {

void RecordFile::flush() {
  if (held_.empty()) return;
  try {
    file_.append(bytes_of(held_));
  } catch (const Error&) {
    if (held_.size() > most_held) {
      held_.clear();
      has_lost_ = true;
    }
    throw;
  }
  held_.clear();
}

void RecordFile::sync() {
  flush();
  try {
    file_.sync();
  } catch (const Error&) {
    has_lost_ = true;  // the system tells of what it could not write once, and forgets it
    throw;
  }
}

}  // namespace purine::io
