#include "purine/train/job_mistake.h"

#include <fmt/format.h>

#include <exception>

namespace purine::train {

JobMistake::JobMistake(std::string_view key, std::string_view text, std::string_view hint)
    : Error("job", fmt::format("{} {}", key, text), hint), key_(key), text_(text) {}

void internal::throw_located(const LoadedJob& loaded, const JobMistake& mistake) {
  throw loaded.error(mistake.key(), mistake.text(), mistake.hint());
}

void internal::throw_agreed(const LoadedJob& loaded, const AgreedError& error) {
  if (error.cause() == nullptr) throw error;
  try {
    locating_mistakes(loaded, [&] { std::rethrow_exception(error.cause()); });
  } catch (const Error& located) {
    throw AgreedError(located);
  }
  throw error;
}

bool internal::is_about_memory(const Error& error) {
  return error.component() == "memory";
}

void internal::throw_memory_error(const LoadedJob& loaded, const Error& error) {
  throw loaded.error("data.batch", fmt::format("is {}, and {}", loaded.job.data.batch, error.message()),
                     error.hint());
}

}  // namespace purine::train
