// JSON for standard output.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace purine::cli {

/// A JSON object whose members keep their order: `{"model":"lenet","images_per_s_median":5120.5}`. Text that
/// is not UTF-8 (a file's name can be anything) has its wrong bytes replaced; numbers that are not finite
/// become null.
class JsonObject {
 public:
  JsonObject& add(std::string_view name, bool value);
  JsonObject& add(std::string_view name, std::int64_t value);
  JsonObject& add(std::string_view name, int value) { return add(name, static_cast<std::int64_t>(value)); }
  JsonObject& add(std::string_view name, std::size_t value) {
    return add(name, static_cast<std::int64_t>(value));
  }
  JsonObject& add(std::string_view name, double value);
  JsonObject& add(std::string_view name, std::string_view value);
  JsonObject& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  JsonObject& add(std::string_view name, const std::string& value) {
    return add(name, std::string_view(value));
  }
  JsonObject& add(std::string_view name, const JsonObject& value);
  JsonObject& add(std::string_view name, std::span<const std::int64_t> values);
  JsonObject& add(std::string_view name, std::span<const std::string> values);
  JsonObject& add(std::string_view name, std::span<const JsonObject> values);

  std::string text() const { return "{" + members_ + "}"; }

 private:
  JsonObject& add_text(std::string_view name, std::string_view json);

  std::string members_;
};

/// Prints the object as one line on standard output.
void print_line(const JsonObject& object);

}  // namespace purine::cli
