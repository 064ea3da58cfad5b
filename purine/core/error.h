// The one exception type that callers of Purine meet.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace purine {

/// An error that a caller can meet: what failed, where, what was expected and got, and a hint.
///
/// Its text reads `[conv2d] googlenet/conv1: weight has 3 input channels, image has 1; hint: …`.
/// `component` is the operator's type or the part of the library, `path` the vertex, file or key, and may be
/// empty; so may the hint and the location. Code that knows the path but not the cause catches an error and
/// throws it again with `at(path)`.
class Error : public std::runtime_error {
 public:
  Error(std::string_view component, std::string_view message, std::string_view hint = {});

  /// The same error with the path it belongs to; a path that is already set stays.
  Error at(std::string_view path) const;
  /// The same error with the location (`0/cpu:0`) where it happened; one that is already set stays.
  Error on(std::string_view location) const;

  const std::string& component() const { return component_; }
  const std::string& path() const { return path_; }
  const std::string& location() const { return location_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }

 private:
  Error(std::string component, std::string path, std::string location, std::string message, std::string hint);

  std::string component_;
  std::string path_;
  std::string location_;
  std::string message_;
  std::string hint_;
};

namespace internal {
[[noreturn]] void check_failed(const char* file, int line, const char* expression, const std::string& left,
                               const std::string& right);
template <typename T>
std::string check_text(const T& value) {
  if constexpr (requires { std::to_string(value); }) {
    return std::to_string(value);
  } else {
    return std::string(value);
  }
}
}  // namespace internal

}  // namespace purine

/// Checks for our own bugs, in every build: throw std::logic_error that names the expression and both values.
#define PURINE_CHECK(condition)                                                                          \
  do {                                                                                                   \
    if (!(condition)) ::purine::internal::check_failed(__FILE__, __LINE__, #condition, "false", "true"); \
  } while (false)
#define PURINE_CHECK_EQUAL(left, right)                                               \
  do {                                                                                \
    const auto& purine_left = (left);                                                 \
    const auto& purine_right = (right);                                               \
    if (!(purine_left == purine_right)) {                                             \
      ::purine::internal::check_failed(__FILE__, __LINE__, #left " == " #right,       \
                                       ::purine::internal::check_text(purine_left),   \
                                       ::purine::internal::check_text(purine_right)); \
    }                                                                                 \
  } while (false)
