#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "purine/core/error.h"
#include "purine/core/json_helpers.h"
#include "purine/core/nearest.h"
#include "purine/train/job_keys.h"

namespace purine::train {
namespace {

std::string number_text(double value) {
  std::string text = fmt::format("{}", value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string bound_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                              : fmt::format("{}", value);
}

// The text with what is not UTF-8 in it replaced.
std::string as_utf8(std::string_view text) {
  const std::string escaped =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return parse_json(escaped).get<std::string>();
}

// Files hold UTF-8 alone; the name of a run folder, which can be anything, is not read from them again.
std::string toml_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : as_utf8(text)) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace

bool JobRange::contains(double value) const {
  if (!std::isfinite(value)) return false;
  if (above_minimum ? value <= minimum : value < minimum) return false;
  return below_maximum ? value < maximum : value <= maximum;
}

std::string JobRange::text() const {
  const bool lower = std::isfinite(minimum);
  const bool upper = std::isfinite(maximum);
  if (lower && upper && !above_minimum && !below_maximum) {
    return fmt::format("{} to {}", bound_text(minimum), bound_text(maximum));
  }
  std::string text;
  if (lower) text = (above_minimum ? "above " : "at least ") + bound_text(minimum);
  if (upper) {
    text += (lower ? " and " : "") + std::string(below_maximum ? "below " : "at most ") + bound_text(maximum);
  }
  return text;
}

std::string JobCondition::text() const {
  std::vector<std::string> texts;
  for (const std::string& value : values) texts.push_back(toml_text(value));
  const std::string last = texts.back();
  texts.pop_back();
  const std::string_view name = std::string_view(key).substr(key.find('.') + 1);
  return fmt::format("{} = {}{}{}", name, fmt::join(texts, ", "), texts.empty() ? "" : " or ", last);
}

bool JobCondition::holds(const Job& job) const {
  const JobKey* other = find_job_key(key);
  PURINE_CHECK(other != nullptr);
  const auto value = std::get<std::string>(other->member.get(job));
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::string_view JobKey::type() const {
  return job_type_name(default_value());
}

std::string JobKey::allowed() const {
  if (!choices.empty()) return fmt::format("{}", fmt::join(choices, ", "));
  std::string text = range.text();
  if (!lengths.empty()) {
    std::vector<std::string> counts;
    for (const std::size_t length : lengths) counts.push_back(length == 0 ? "none" : std::to_string(length));
    const std::string last = counts.back();
    counts.pop_back();
    const std::string count =
        counts.empty() ? last + " of them" : fmt::format("{} or {} of them", fmt::join(counts, ", "), last);
    text = text.empty() ? count : count + ", each " + text;
  }
  return text;
}

std::optional<JobKey::Complaint> JobKey::check(const JobValue& value) const {
  const auto outside = [&](double number, const std::string& text) -> std::optional<Complaint> {
    if (range.contains(number)) return std::nullopt;
    const std::string bounds = range.text();
    // The range has what is not finite out of it, which it doesn't say.
    const bool is_finite = std::isfinite(number);
    return Complaint{fmt::format("must be {}, got {}", is_finite ? bounds : "a finite number", text), {}};
  };
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return outside(static_cast<double>(*integer), std::to_string(*integer));
  }
  if (const auto* number = std::get_if<double>(&value)) return outside(*number, number_text(*number));
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (required && text->empty()) return Complaint{"must not be empty", {}};
    if (as_utf8(*text) != *text) return Complaint{"must be UTF-8 text", "a job's file can hold nothing else"};
    if (choices.empty() || std::find(choices.begin(), choices.end(), *text) != choices.end()) {
      return std::nullopt;
    }
    const std::string meant = nearest(*text, choices);
    return Complaint{fmt::format("must be one of {}; got \"{}\"", fmt::join(choices, ", "), *text),
                     meant.empty() ? "" : fmt::format("did you mean \"{}\"?", meant)};
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    for (const std::string& each : *texts) {
      if (as_utf8(each) != each)
        return Complaint{"must be UTF-8 texts", "a job's file can hold nothing else"};
    }
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    if (!lengths.empty() && std::find(lengths.begin(), lengths.end(), numbers->size()) == lengths.end()) {
      return Complaint{fmt::format("must be a {}, {}; got {}", type(), allowed(), job_value_text(value)), {}};
    }
    for (const double number : *numbers) {
      if (!range.contains(number)) {
        return Complaint{
            fmt::format("must be {}, got {}",
                        std::isfinite(number) ? "numbers each " + range.text() : "finite numbers",
                        job_value_text(value)),
            {}};
      }
    }
  }
  return std::nullopt;
}

std::string_view job_type_name(const JobValue& value) {
  static constexpr std::string_view names[] = {"true or false", "integer",         "number",
                                               "text",          "list of numbers", "list of texts"};
  return names[value.index()];
}

std::string job_value_text(const JobValue& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return toml_text(*text);
  std::vector<std::string> parts;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    for (const std::string& text : *texts) parts.push_back(toml_text(text));
  } else {
    for (const double number : std::get<std::vector<double>>(value)) parts.push_back(number_text(number));
  }
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

}  // namespace purine::train
