#include "purine/core/logging.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <array>
#include <cstdlib>
#include <string>

#include "purine/core/error.h"

namespace purine {
namespace {

struct LevelName {
  LogLevel level;
  std::string_view name;
  spdlog::level::level_enum spdlog_level;
};
constexpr std::array<LevelName, 5> level_names{{{LogLevel::debug, "debug", spdlog::level::debug},
                                                {LogLevel::info, "info", spdlog::level::info},
                                                {LogLevel::warning, "warning", spdlog::level::warn},
                                                {LogLevel::error, "error", spdlog::level::err},
                                                {LogLevel::off, "off", spdlog::level::off}}};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  return level_names[static_cast<std::size_t>(level)].spdlog_level;
}

}  // namespace

LogLevel parse_log_level(std::string_view text) {
  for (const LevelName& level : level_names) {
    if (level.name == text) return level.level;
  }
  throw Error("log", "`" + std::string(text) + "` is not a level of messages",
              "the levels are debug, info, warning, error and off");
}

LogLevel log_level_from_environment() {
  const char* text = std::getenv("PURINE_LOG");
  if (text == nullptr || *text == '\0') return LogLevel::info;
  try {
    return parse_log_level(text);
  } catch (const Error& error) {
    throw error.at("PURINE_LOG");
  }
}

Logger::Logger(LogLevel level, std::string_view prefix) {
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  logger_ = std::make_shared<spdlog::logger>(std::string(prefix), std::move(sink));
  logger_->set_pattern(prefix.empty() ? "%H:%M:%S.%e %^%l%$: %v" : "%H:%M:%S.%e %n: %^%l%$: %v");
  set_level(level);
}

LogLevel Logger::level() const {
  for (const LevelName& level : level_names) {
    if (level.spdlog_level == logger_->level()) return level.level;
  }
  return LogLevel::off;
}

void Logger::set_level(LogLevel level) {
  logger_->set_level(to_spdlog(level));
}

void Logger::write(LogLevel level, std::string_view message) const {
  logger_->log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace purine
