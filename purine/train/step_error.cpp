#include "purine/train/step_error.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace purine::train {

Error divergence(std::int64_t step, std::string_view what) {
  return Error("training", fmt::format("step {}: {}", step, what),
               "training has diverged: try a lower optimizer.learning_rate, a longer "
               "optimizer.warmup_epochs, or gradient clipping (optimizer.clip_norm)");
}

Error step_error(const IterationError& error) {
  const Error& cause = error.cause();
  const std::int64_t step = error.iteration() + 1;
  if (cause.component() == "check_finite") {
    return divergence(step, fmt::format("{}, so the step was not taken", cause.message()));
  }
  return Error(cause.component(), fmt::format("{} (step {})", cause.message(), step), cause.hint())
      .at(cause.path())
      .on(cause.location());
}

RemoteError step_error(const RemoteError& error, std::int64_t steps_done) {
  const RemoteError step =
      renumbered(error, [](std::int64_t iteration) { return fmt::format("step {}", iteration + 1); });
  for (const std::string_view when : {" (step ", " (batch "}) {
    if (step.message().find(when) != std::string::npos) return step;
  }
  return {step.rank(), fmt::format("{} (after step {})", step.message(), steps_done), step.hint(),
          step.state()};
}

RemoteError renumbered(const RemoteError& error,
                       const std::function<std::string(std::int64_t iteration)>& words) {
  const std::string_view message = error.message();
  constexpr std::string_view mark = " (iteration ";
  const std::size_t begin = message.rfind(mark);
  std::int64_t iteration = 0;
  if (begin == std::string_view::npos) return error;
  const char* const number = message.data() + begin + mark.size();
  const auto [end, code] = std::from_chars(number, message.data() + message.size(), iteration);
  if (code != std::errc()) return error;
  const std::string_view rest = message.substr(static_cast<std::size_t>(end - message.data()));
  return {error.rank(), fmt::format("{} ({}{}", message.substr(0, begin), words(iteration), rest),
          error.hint(), error.state()};
}

}  // namespace purine::train
