#include "purine/train/job_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "purine/core/nearest.h"
#include "purine/io/file.h"
#include "purine/train/job_keys.h"
#include "purine/train/parallel_section.h"

namespace purine::train {
namespace {

Error job_error(std::string_view origin, std::string_view message, std::string_view hint = {}) {
  return Error("job", message, hint).at(origin);
}

// How a message shows a value that is of the wrong type.
std::string shown(const toml::node& node) {
  if (const auto* text = node.as_string()) return job_value_text(text->get());
  if (const auto* integer = node.as_integer()) return job_value_text(integer->get());
  if (const auto* number = node.as_floating_point()) return job_value_text(number->get());
  if (const auto* boolean = node.as_boolean()) return job_value_text(boolean->get());
  if (node.is_array()) return "a list";
  return node.is_table() ? "a table" : "a date or time";
}

std::optional<double> as_number(const toml::node& node) {
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* integer = node.as_integer()) return static_cast<double>(integer->get());
  return std::nullopt;
}

// The node as a value of the key's type; nothing if it is of another.
std::optional<JobValue> convert(const JobKey& key, const toml::node& node) {
  const JobValue type = key.default_value();
  if (std::holds_alternative<bool>(type)) {
    if (const auto* boolean = node.as_boolean()) return boolean->get();
  } else if (std::holds_alternative<std::int64_t>(type)) {
    if (const auto* integer = node.as_integer()) return integer->get();
  } else if (std::holds_alternative<std::string>(type)) {
    if (const auto* text = node.as_string()) return text->get();
  } else if (std::holds_alternative<double>(type)) {
    if (const auto number = as_number(node)) return *number;
  } else if (std::holds_alternative<std::vector<std::string>>(type)) {
    const auto* list = node.as_array();
    if (list == nullptr) return std::nullopt;
    std::vector<std::string> texts;
    for (const toml::node& element : *list) {
      if (!element.is_string()) return std::nullopt;
      texts.push_back(element.as_string()->get());
    }
    return texts;
  } else if (const auto number = as_number(node)) {
    return std::vector<double>{*number};
  } else if (const auto* list = node.as_array()) {
    std::vector<double> numbers;
    for (const toml::node& element : *list) {
      const auto element_number = as_number(element);
      if (!element_number) return std::nullopt;
      numbers.push_back(*element_number);
    }
    return numbers;
  }
  return std::nullopt;
}

std::string with_article(std::string_view type) {
  if (type == "true or false" || type == "text") return std::string(type);
  return (type == "integer" ? "an " : "a ") + std::string(type);
}

void set_key(LoadedJob& loaded, const JobKey& key, const toml::node& node, const std::string& origin) {
  const auto value = convert(key, node);
  if (!value) {
    const bool quoted = node.is_string() && key.type() != "text";
    throw job_error(origin,
                    fmt::format("{} must be {}, got {}", key.path(), with_article(key.type()), shown(node)),
                    quoted                 ? "leave the quotes out"
                    : key.type() == "text" ? "put it in quotes"
                                           : "");
  }
  if (const auto complaint = key.check(*value)) {
    throw job_error(origin, key.path() + " " + complaint->message, complaint->hint);
  }
  key.member.set(loaded.job, *value);
  loaded.origins[key.path()] = origin;
}

Error unknown_section(std::string_view section, const std::string& origin) {
  const std::vector<std::string> sections = job_sections();
  const std::string meant = nearest(section, sections);
  return job_error(origin, fmt::format("unknown section [{}]", section),
                   meant.empty() ? fmt::format("the sections are {}", fmt::join(sections, ", "))
                                 : fmt::format("did you mean [{}]?", meant));
}

// `[model] or [optimizer]`: the sections that have a key of this name; empty if none has.
std::string sections_of(std::string_view name) {
  std::vector<std::string> sections;
  for (const JobKey& key : job_keys()) {
    if (key.name == name) sections.push_back(fmt::format("[{}]", key.section));
  }
  if (sections.size() < 2) return sections.empty() ? std::string() : sections.front();
  const auto last = sections.end() - 1;
  return fmt::format("{} or {}", fmt::join(sections.begin(), last, ", "), *last);
}

Error unknown_key(std::string_view section, std::string_view name, const std::string& origin) {
  std::vector<std::string> names;
  for (const JobKey& key : job_keys()) {
    if (key.section == section) names.push_back(key.name);
  }
  std::string hint;
  if (const std::string meant = nearest(name, names); !meant.empty()) {
    hint = fmt::format("did you mean '{}'?", meant);
  } else if (const std::string owners = sections_of(name); !owners.empty()) {
    hint = fmt::format("'{}' belongs in {}", name, owners);
  } else {
    hint = fmt::format("its keys are {}", fmt::join(names, ", "));
  }
  return job_error(origin, fmt::format("unknown key '{}' in [{}]", name, section), hint);
}

Error outside_sections(std::string_view name, const std::string& origin) {
  const std::string owners = sections_of(name);
  const std::string hint = owners.empty()
                               ? fmt::format("the sections are {}", fmt::join(job_sections(), ", "))
                               : fmt::format("it belongs in {}", owners);
  return job_error(origin, fmt::format("key '{}' is outside of all sections", name), hint);
}

// Keeps the mistake that comes first in the file, since a table's entries are not in the file's order.
class FirstMistake {
 public:
  template <typename Function>
  void watch(unsigned line, Function&& function) {
    try {
      function();
    } catch (const Error& error) {
      if (!error_ || line < line_) {
        error_ = error;
        line_ = line;
      }
    }
  }
  void throw_if_any() const {
    if (error_) throw *error_;
  }

 private:
  std::optional<Error> error_;
  unsigned line_ = 0;
};

void read_file_keys(LoadedJob& loaded, std::string_view text) {
  toml::table root;
  try {
    root = toml::parse(text, std::string_view(loaded.name));
  } catch (const toml::parse_error& error) {
    throw job_error(fmt::format("{}:{}", loaded.name, error.source().begin.line),
                    fmt::format("not TOML: {}", error.description()));
  }
  FirstMistake mistake;
  for (const auto& [section_key, section_node] : root) {
    const std::string section(section_key.str());
    const unsigned section_line = section_key.source().begin.line;
    const std::string section_origin = fmt::format("{}:{}", loaded.name, section_line);
    const toml::table* table = section_node.as_table();
    if (table == nullptr) {
      mistake.watch(section_line, [&, &node = section_node] {
        if (node.is_array_of_tables()) {
          throw job_error(section_origin, fmt::format("[[{}]] is a list of sections", section),
                          fmt::format("write [{}], once", section));
        }
        throw outside_sections(section, section_origin);
      });
      continue;
    }
    const std::vector<std::string> sections = job_sections();
    if (std::find(sections.begin(), sections.end(), section) == sections.end()) {
      mistake.watch(section_line, [&] { throw unknown_section(section, section_origin); });
      continue;
    }
    for (const auto& [name, node] : *table) {
      const unsigned line = name.source().begin.line;
      mistake.watch(line, [&, name = name.str(), node = &node] {
        const std::string origin = fmt::format("{}:{}", loaded.name, line);
        const JobKey* key = find_job_key(section, name);
        if (key == nullptr) throw unknown_key(section, name, origin);
        set_key(loaded, *key, *node, origin);
      });
    }
  }
  mistake.throw_if_any();
}

toml::array texts_between_commas(std::string_view value) {
  toml::array texts;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find(',', begin), value.size());
    texts.push_back(std::string(value.substr(begin, end - begin)));
    begin = end + 1;
  }
  return texts;
}

// What to do about the value of a setting that is not one of TOML.
std::string hint_for_value(const JobKey& key, std::string_view value) {
  if (value.empty()) return "write a value behind the =";
  if (value.find_first_not_of("+-0123456789") == std::string_view::npos) return "integers have 64 bits";
  if (key.type() == "text") return "close the quotes, or leave them out";
  if (key.type() == "list of texts") {
    return fmt::format("write {}=a,b or, for texts with commas, '{}=[\"a\", \"b\"]'", key.path(), key.path());
  }
  if (key.type().starts_with("list")) return fmt::format("write {}=0.5,1", key.path());
  return "";
}

// Returns the key's path.
std::string apply_setting(LoadedJob& loaded, const JobSetting& setting) {
  const std::string& assignment = setting.assignment;
  const std::size_t equals = assignment.find('=');
  const std::size_t dot = assignment.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
    throw job_error(setting.origin, "not a setting", "write section.key=value");
  }
  const std::string section = assignment.substr(0, dot);
  std::string name = assignment.substr(dot + 1, equals - dot - 1);
  std::string value = assignment.substr(equals + 1);
  if (name.ends_with(' ')) {  // written as in a file, with spaces around the =
    name.erase(name.find_last_not_of(' ') + 1);
    value.erase(0, value.find_first_not_of(' '));
  }
  const std::vector<std::string> sections = job_sections();
  if (std::find(sections.begin(), sections.end(), section) == sections.end()) {
    throw unknown_section(section, setting.origin);
  }
  const JobKey* key = find_job_key(section, name);
  if (key == nullptr) throw unknown_key(section, name, setting.origin);

  const bool quoted = value.starts_with('"') || value.starts_with('\'');
  if (key->type() == "text" && !quoted) {
    set_key(loaded, *key, toml::value<std::string>(value), setting.origin);
    return key->path();
  }
  if (key->type().starts_with("list") && !value.starts_with('[')) {
    if (key->type() == "list of texts") {
      set_key(loaded, *key, texts_between_commas(value), setting.origin);
      return key->path();
    }
    value = "[" + value + "]";
  }
  toml::table table;
  try {
    table = toml::parse("value = " + value);
  } catch (const toml::parse_error&) {
    throw job_error(setting.origin,
                    fmt::format("{} must be {}, got {}", key->path(), with_article(key->type()),
                                value.empty() ? "nothing" : value),
                    hint_for_value(*key, value));
  }
  set_key(loaded, *key, *table.get("value"), setting.origin);
  return key->path();
}

// Nothing of something goes with everything.
bool is_zero(const JobValue& value) {
  return value == JobValue(std::int64_t{0}) || value == JobValue(0.0);
}

void check_required(const LoadedJob& loaded) {
  for (const JobKey& key : job_keys()) {
    if (key.required && !loaded.origins.contains(key.path())) {
      throw job_error(
          loaded.name, key.path() + " is missing",
          fmt::format("add {} = \"…\" in [{}], or give --set {}=…", key.name, key.section, key.path()));
    }
  }
}

// Keys that mean nothing, because of another's value. Beside the file one may try another value of that out;
// what the file has for the former one is left out then.
void check_conditions(LoadedJob& loaded, const std::set<std::string>& set_beside) {
  for (const JobKey& key : job_keys()) {
    const auto origin = loaded.origins.find(key.path());
    if (origin == loaded.origins.end() || key.counts(loaded.job) || is_zero(key.member.get(loaded.job)))
      continue;
    const JobCondition& condition = *key.only_with;
    if (set_beside.contains(condition.key) && !set_beside.contains(key.path())) {
      key.member.set(loaded.job, key.default_value());
      loaded.origins.erase(origin);
      continue;
    }
    const JobKey& other = *find_job_key(condition.key);
    throw loaded.error(
        key.path(),
        fmt::format("does not go with {} = {}", other.name, job_value_text(other.member.get(loaded.job))),
        !condition.hint.empty()        ? condition.hint
        : condition.values.size() == 1 ? "set " + condition.text()
                                       : "it goes with " + condition.text());
  }
}

// What a table of single keys can't say.
void check_together(const LoadedJob& loaded) {
  const Job::Data& data = loaded.job.data;
  if (data.channels == 2) throw loaded.error("data.channels", "must be 0, 1 or 3, got 2");
  const bool sizes_differ = data.format == "folder";
  if (sizes_differ && data.crop_size == 0) {
    throw loaded.error("data.crop_size", "is needed with format = \"folder\", whose images differ in size",
                       "set crop and crop_size");
  }
  if (data.crop == "random_resized" && data.crop_size == 0) {
    throw loaded.error("data.crop_size", "is needed with crop = \"random_resized\"");
  }
  if (data.area.front() > data.area.back()) {
    throw loaded.error("data.area", "must be the least, then the greatest");
  }
  if (data.ratio.front() > data.ratio.back()) {
    throw loaded.error("data.ratio", "must be the least, then the greatest");
  }
}

bool follows_epochs(const Job& job) {
  return job.optimizer.schedule == "polynomial" || job.optimizer.schedule == "cosine";
}

bool decides_results(const JobKey& key, const Job& job) {
  return key.on_resume == OnResume::fixed ||
         (key.on_resume == OnResume::follows_schedule && follows_epochs(job));
}

template <typename Predicate>
std::string text_of(const Job& job, Predicate&& wanted) {
  std::string text;
  std::string_view section;
  for (const JobKey& key : job_keys()) {
    if (!wanted(key)) continue;
    if (key.section != section) {
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", key.section);
      section = key.section;
    }
    text += fmt::format("{} = {}\n", key.name, job_value_text(key.member.get(job)));
  }
  return text;
}

}  // namespace

Error LoadedJob::error(std::string_view key, std::string_view message, std::string_view hint) const {
  const auto origin = origins.find(key);
  return job_error(origin == origins.end() ? name : origin->second, fmt::format("{} {}", key, message), hint);
}

LoadedJob parse_job(std::string_view text, std::string_view name, std::span<const JobSetting> settings) {
  LoadedJob loaded{.job = {}, .name = std::string(name)};
  read_file_keys(loaded, text);
  std::set<std::string> set_beside;
  for (const JobSetting& setting : settings) set_beside.insert(apply_setting(loaded, setting));
  check_required(loaded);
  check_conditions(loaded, set_beside);
  leave_out_of_other_schemes(loaded, set_beside);
  check_together(loaded);
  return loaded;
}

LoadedJob read_job(const std::filesystem::path& path, std::span<const JobSetting> settings) {
  std::string text;
  try {
    text = io::read_file(path);
  } catch (const Error& error) {
    throw job_error(path.string(), error.message(), error.hint());
  }
  return parse_job(text, path.string(), settings);
}

std::string job_text(const Job& job) {
  return text_of(job, [&](const JobKey& key) { return key.counts(job); });
}

std::string job_identity(const Job& job) {
  return text_of(job, [&](const JobKey& key) { return key.counts(job) && decides_results(key, job); });
}

void check_resumable(const Job& started, const LoadedJob& resumed) {
  for (const JobKey& key : job_keys()) {
    const JobValue before = key.member.get(started);
    const JobValue now = key.member.get(resumed.job);
    if (before == now || !decides_results(key, started)) continue;
    std::string hint = "resume with the same value, or start another run in another run folder";
    if (key.on_resume == OnResume::follows_schedule) {
      hint = fmt::format("the {} schedule ends with the run; {}", started.optimizer.schedule, hint);
    }
    throw resumed.error(key.path(),
                        fmt::format("was {} when the run was started, and is {} now", job_value_text(before),
                                    job_value_text(now)),
                        hint);
  }
}

}  // namespace purine::train
