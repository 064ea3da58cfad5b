#include "purine/core/error.h"

#include <utility>

namespace purine {
namespace {

std::string compose(const std::string& component, const std::string& path, const std::string& location,
                    const std::string& message, const std::string& hint) {
  std::string text = "[" + component + "] ";
  if (!path.empty()) text += path;
  if (!location.empty()) text += (path.empty() ? "on " : " on ") + location;
  if (!path.empty() || !location.empty()) text += ": ";
  text += message;
  if (!hint.empty()) text += "; hint: " + hint;
  return text;
}

}  // namespace

Error::Error(std::string_view component, std::string_view message, std::string_view hint)
    : Error(std::string(component), {}, {}, std::string(message), std::string(hint)) {}

Error::Error(std::string component, std::string path, std::string location, std::string message,
             std::string hint)
    : std::runtime_error(compose(component, path, location, message, hint)),
      component_(std::move(component)),
      path_(std::move(path)),
      location_(std::move(location)),
      message_(std::move(message)),
      hint_(std::move(hint)) {}

Error Error::at(std::string_view path) const {
  return Error(component_, path_.empty() ? std::string(path) : path_, location_, message_, hint_);
}

Error Error::on(std::string_view location) const {
  return Error(component_, path_, location_.empty() ? std::string(location) : location_, message_, hint_);
}

namespace internal {

void check_failed(const char* file, int line, const char* expression, const std::string& left,
                  const std::string& right) {
  throw std::logic_error(std::string(file) + ":" + std::to_string(line) + ": bug in purine: " + expression +
                         " does not hold: " + left + " against " + right);
}

}  // namespace internal
}  // namespace purine
