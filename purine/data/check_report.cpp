#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "purine/core/one_line.h"
#include "purine/data/check.h"

namespace purine::data {
namespace {

using Part = CheckReport::Part;

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string sizes_text(const Part& part) {
  const auto& [first_height, first_width] = part.sizes.begin()->first;
  if (part.sizes.size() == 1)
    return fmt::format("all {} x {} pixels (width x height)", first_width, first_height);
  int least_width = first_width;
  int most_width = first_width;
  for (const auto& [size, count] : part.sizes) {
    least_width = std::min(least_width, size.second);
    most_width = std::max(most_width, size.second);
  }
  return fmt::format("widths {} to {}, heights {} to {} pixels", least_width, most_width, first_height,
                     part.sizes.rbegin()->first.first);
}

// Every class of a few; of many the first and the last, the smallest and the largest, and those without
// images.
std::string classes_text(const Part& part) {
  constexpr std::size_t few = 20;
  const auto sized = [](const CheckReport::Class& item) {
    return fmt::format("{} {}{}", one_line(item.name), item.images,
                       item.broken == 0 ? "" : fmt::format(" ({} broken)", item.broken));
  };
  const auto text = [&](const CheckReport::Class& item) {
    return fmt::format("{} {}", item.label ? std::to_string(*item.label) : "-", sized(item));
  };
  std::vector<std::string> texts;
  if (part.classes.size() <= few) {
    for (const CheckReport::Class& item : part.classes) texts.push_back(text(item));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
  for (std::size_t i = 0; i < 3; ++i) texts.push_back(text(part.classes[i]));
  const auto [least, most] =
      std::minmax_element(part.classes.begin(), part.classes.end(),
                          [](const auto& left, const auto& right) { return left.images < right.images; });
  std::vector<std::string> empty;
  for (const CheckReport::Class& item : part.classes) {
    if (item.images == 0) empty.push_back(one_line(item.name));
  }
  std::string end;
  if (!empty.empty()) {
    const std::size_t more = empty.size() - std::min(empty.size(), few);
    empty.resize(empty.size() - more);
    end = fmt::format("; empty {}{}", fmt::join(empty, ", "),
                      more == 0 ? "" : fmt::format(" and {} more", more));
  }
  return fmt::format("{}, … {}; smallest {}, largest {}{}", fmt::join(texts, ", "), text(part.classes.back()),
                     sized(*least), sized(*most), end);
}

void append_findings(std::string& text, std::string_view what,
                     const std::vector<CheckReport::Finding>& findings) {
  for (const CheckReport::Finding& finding : findings) {
    text += fmt::format("  {}: {}: {}\n", what, one_line(finding.path), one_line(finding.reason));
  }
}

nlohmann::json findings_json(const std::vector<CheckReport::Finding>& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const CheckReport::Finding& finding : findings) {
    list.push_back({{"path", finding.path}, {"reason", finding.reason}});
  }
  return list;
}

nlohmann::json part_json(const Part& part) {
  nlohmann::json classes = nlohmann::json::array();
  for (const CheckReport::Class& item : part.classes) {
    classes.push_back({{"name", item.name},
                       {"label", item.label ? nlohmann::json(*item.label) : nlohmann::json(nullptr)},
                       {"images", item.images},
                       {"broken", item.broken}});
  }
  nlohmann::json sizes = nlohmann::json::array();
  for (const auto& [size, count] : part.sizes) {
    sizes.push_back({{"height", size.first}, {"width", size.second}, {"images", count}});
  }
  return {{"name", part.name},
          {"images", part.images},
          {"classes", std::move(classes)},
          {"broken", findings_json(part.broken)},
          {"harmless", findings_json(part.harmless)},
          {"ignored", part.ignored},
          {"problems", part.problems},
          {"doubts", part.doubts},
          {"modes", part.modes},
          {"sizes", std::move(sizes)},
          {"turned", part.turned}};
}

}  // namespace

bool CheckReport::ok() const {
  return std::all_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.broken.empty() && part.problems.empty(); });
}

std::string CheckReport::text() const {
  std::string text = fmt::format("{}: {}\n", one_line(folder), format);
  for (const Part& part : parts) {
    const std::string name = part.name.empty() ? "" : part.name + ": ";
    text += fmt::format("{}{} in {}, {} broken\n", name, counted(part.images, "image", "images"),
                        counted(static_cast<std::int64_t>(part.classes.size()), "class", "classes"),
                        part.broken.size());
    if (!part.classes.empty()) text += fmt::format("  classes by label: {}\n", classes_text(part));
    if (!part.sizes.empty()) text += fmt::format("  sizes: {}\n", sizes_text(part));
    if (!part.modes.empty()) {
      std::vector<std::string> modes;
      for (const auto& [mode, count] : part.modes) modes.push_back(fmt::format("{} {}", count, mode));
      text += fmt::format("  modes: {}\n", fmt::join(modes, ", "));
    }
    if (part.turned != 0) text += fmt::format("  turned upright: {}\n", part.turned);
    if (!part.ignored.empty()) {
      text += fmt::format("  passed over: {}, {} the first\n",
                          counted(static_cast<std::int64_t>(part.ignored.size()), "file", "files"),
                          one_line(part.ignored.front()));
    }
    append_findings(text, "harmless", part.harmless);
    append_findings(text, "broken", part.broken);
    for (const std::string& problem : part.problems)
      text += fmt::format("  problem: {}\n", one_line(problem));
    for (const std::string& doubt : part.doubts) text += fmt::format("  doubtful: {}\n", one_line(doubt));
  }
  return text;
}

std::string CheckReport::json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Part& part : parts) list.push_back(part_json(part));
  const nlohmann::json report = {
      {"folder", folder}, {"format", format}, {"ok", ok()}, {"parts", std::move(list)}};
  // A path may hold bytes that are no UTF-8.
  return report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace purine::data
