#include "purine/cli/json_object.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace purine::cli {
namespace {

template <typename T>
std::string json_text(const T& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <typename T, typename Function>
std::string list_text(std::span<const T> values, Function&& text_of) {
  std::string text = "[";
  for (const T& value : values) {
    if (text.size() > 1) text += ',';
    text += text_of(value);
  }
  return text + "]";
}

}  // namespace

JsonObject& JsonObject::add(std::string_view name, bool value) {
  return add_text(name, value ? "true" : "false");
}

JsonObject& JsonObject::add(std::string_view name, std::int64_t value) {
  return add_text(name, std::to_string(value));
}

JsonObject& JsonObject::add(std::string_view name, double value) {
  return add_text(name, json_text(value));
}

JsonObject& JsonObject::add(std::string_view name, std::string_view value) {
  return add_text(name, json_text(value));
}

JsonObject& JsonObject::add(std::string_view name, const JsonObject& value) {
  return add_text(name, value.text());
}

JsonObject& JsonObject::add(std::string_view name, std::span<const std::int64_t> values) {
  return add_text(name, list_text(values, [](std::int64_t value) { return std::to_string(value); }));
}

JsonObject& JsonObject::add(std::string_view name, std::span<const std::string> values) {
  return add_text(name, list_text(values, [](const std::string& value) { return json_text(value); }));
}

JsonObject& JsonObject::add(std::string_view name, std::span<const JsonObject> values) {
  return add_text(name, list_text(values, [](const JsonObject& value) { return value.text(); }));
}

JsonObject& JsonObject::add_text(std::string_view name, std::string_view json) {
  if (!members_.empty()) members_ += ',';
  members_ += json_text(name);
  members_ += ':';
  members_ += json;
  return *this;
}

void print_line(const JsonObject& object) {
  fmt::print("{}\n", object.text());
  std::fflush(stdout);
}

}  // namespace purine::cli
