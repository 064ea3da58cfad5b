#include "purine/io/metrics.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "purine/core/error.h"
#include "purine/core/json_helpers.h"
#include "purine/io/json_text.h"

namespace purine::io {
namespace {

using Json = nlohmann::json;

std::string value_text(const MetricValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_floating_point_v<Held>) return json_number(held);
        if constexpr (std::is_integral_v<Held>) return std::to_string(held);
        if constexpr (std::is_same_v<Held, std::string>) return json_text(held);
      },
      value);
}

Json record_of(std::string_view line, std::size_t line_number) {
  std::string problem = "it is not an object with a whole number `step`";
  try {
    Json json = parse_json(line);
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer()) return json;
  } catch (const Json::exception&) {
    problem = "it is not JSON";
  }
  throw Error("metrics", fmt::format("line {} is not a record of metrics: {}", line_number, problem),
              "repair the file or move it away");
}

bool has_text(const Json& record, const Metric& metric) {
  const auto found = record.find(metric.name);
  return found != record.end() && *found == std::get<std::string>(metric.value);
}

/// Calls a function with each record and where it begins, while that gives true.
template <typename Function>
void for_each_record(std::string_view content, Function&& function) {
  std::size_t begin = 0;
  for (std::size_t line_number = 1;; ++line_number) {
    const std::size_t end = content.find('\n', begin);
    if (end == std::string_view::npos) return;
    if (!function(record_of(content.substr(begin, end - begin), line_number), begin)) return;
    begin = end + 1;
  }
}

/// How many bytes of a file's content come before the first record that MetricsWriter::resume cuts away.
std::size_t bytes_before(std::string_view content, std::int64_t step, const std::optional<Metric>& also) {
  std::size_t kept = content.rfind('\n') + 1;  // npos + 1 is 0
  for_each_record(content, [&](const Json& record, std::size_t begin) {
    const auto found = record["step"].get<std::int64_t>();
    const bool stays = found < step && !(also && found == step - 1 && has_text(record, *also));
    if (!stays) kept = begin;
    return stays;
  });
  return kept;
}

}  // namespace

void check_metrics(std::string_view content) {
  for_each_record(content, [](const Json&, std::size_t) { return true; });
}

MetricsWriter MetricsWriter::create(const std::filesystem::path& path) {
  File file = File::create_new(path);
  if (!file.is_open()) {
    throw Error("metrics", "the file exists already", "resume its run, or write to another folder")
        .at(path.string());
  }
  return MetricsWriter(std::move(file));
}

MetricsWriter MetricsWriter::resume(const std::filesystem::path& path, std::int64_t step,
                                    const std::optional<Metric>& also) {
  File file = File::open_to_append(path);
  try {
    file.resize(bytes_before(read_file(path), step, also));
  } catch (const Error& error) {
    throw error.at(path.string());
  }
  return MetricsWriter(std::move(file));
}

void MetricsWriter::write(std::int64_t step, std::span<const Metric> metrics) {
  std::string line = fmt::format("{{\"step\":{}", step);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const std::string_view name = metrics[i].name;
    bool taken = name == "step";
    for (std::size_t j = 0; j < i; ++j) taken = taken || metrics[j].name == name;
    if (taken) {
      throw Error("metrics", fmt::format("a record has the name `{}` twice", name)).at(file_.path().string());
    }
    line += "," + json_text(name) + ":" + value_text(metrics[i].value);
  }
  line += "}\n";
  file_.add(line);
  file_.flush();
}

}  // namespace purine::io
