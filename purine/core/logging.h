// Messages for people, on standard error.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace spdlog {
class logger;
}

namespace purine {

enum class LogLevel : std::uint8_t { debug, info, warning, error, off };

/// Reads `debug`, `info`, `warning`, `error` or `off`; anything else throws Error.
LogLevel parse_log_level(std::string_view text);
/// The level that the environment variable PURINE_LOG names; `info` without it.
LogLevel log_level_from_environment();

/// Writes lines such as `14:03:21.123 warning: 3 images are broken` to standard error, coloured on a
/// terminal. A value that is passed to who needs it; copies write to the same place and share the level. Any
/// thread may log.
class Logger {
 public:
  /// `prefix` comes before each message: `rank 2`.
  explicit Logger(LogLevel level = log_level_from_environment(), std::string_view prefix = {});

  /// Messages below this level are not formatted.
  LogLevel level() const;
  void set_level(LogLevel level);

  template <typename... Arguments>
  void debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    log(LogLevel::debug, format, std::forward<Arguments>(arguments)...);
  }
  template <typename... Arguments>
  void info(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    log(LogLevel::info, format, std::forward<Arguments>(arguments)...);
  }
  template <typename... Arguments>
  void warning(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    log(LogLevel::warning, format, std::forward<Arguments>(arguments)...);
  }
  template <typename... Arguments>
  void error(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    log(LogLevel::error, format, std::forward<Arguments>(arguments)...);
  }

 private:
  template <typename... Arguments>
  void log(LogLevel level, fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    if (level >= this->level()) write(level, fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  void write(LogLevel level, std::string_view message) const;

  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace purine
