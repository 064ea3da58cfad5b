// Mistakes of a job that only its data or its graph can show.
#pragma once

#include <string>
#include <string_view>

#include "purine/core/error.h"
#include "purine/session/agreement.h"
#include "purine/train/job_file.h"

namespace purine::train {

/// What is wrong with a key's value, found out by code that doesn't know where the key was set: `[job]
/// data.batch is 64, and the training set has only 20 images`.
class JobMistake final : public Error {
 public:
  /// `text` goes on from the key: `is 64, and …`.
  JobMistake(std::string_view key, std::string_view text, std::string_view hint = {});

  const std::string& key() const { return key_; }
  const std::string& text() const { return text_; }

 private:
  std::string key_;
  std::string text_;
};

namespace internal {
[[noreturn]] void throw_located(const LoadedJob& loaded, const JobMistake& mistake);
[[noreturn]] void throw_agreed(const LoadedJob& loaded, const AgreedError& error);
[[noreturn]] void throw_memory_error(const LoadedJob& loaded, const Error& error);
bool is_about_memory(const Error& error);
}  // namespace internal

/// Calls a function; a mistake that it throws becomes an Error with file and line of its key, as
/// LoadedJob::error makes them. So does a lack of memory, which is about the batch.
template <typename Function>
auto locating_mistakes(const LoadedJob& loaded, Function&& function) {
  try {
    return function();
  } catch (const JobMistake& mistake) {
    internal::throw_located(loaded, mistake);
  } catch (const AgreedError& error) {
    internal::throw_agreed(loaded, error);
  } catch (const Error& error) {
    if (!internal::is_about_memory(error)) throw;
    internal::throw_memory_error(loaded, error);
  }
}

}  // namespace purine::train
