// The keys of a job file: the one list that reading, checking, help texts and the reference are made from.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "purine/train/job.h"

namespace purine::train {

/// A key's value; which alternative a key has is its type.
using JobValue =
    std::variant<bool, std::int64_t, double, std::string, std::vector<double>, std::vector<std::string>>;

/// Bounds of a number, or of each number of a list.
struct JobRange {
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool above_minimum = false;  ///< the minimum itself is not allowed
  bool below_maximum = false;  ///< the maximum itself is not allowed

  bool contains(double value) const;
  /// `at least 1`, `above 0`, `0 to 1`, `at least 0 and below 1`; empty without bounds.
  std::string text() const;
};

/// Whether a run that is resumed may have another value than the one it was started with.
enum class OnResume : std::uint8_t {
  fixed,             ///< the results would not be those of one run
  follows_schedule,  ///< it may, unless the learning rate's schedule ends with the run
  may_change,        ///< it changes how far or how the run goes, not its numbers
};

/// A member of a job, read and written as a value.
struct JobMember {
  std::function<JobValue(const Job&)> get;
  std::function<void(Job&, const JobValue&)> set;
};

/// What another key has to be for a key to mean anything: `schedule = "step"`.
struct JobCondition {
  std::string key;  ///< of text: `optimizer.schedule`
  std::vector<std::string> values;
  std::string hint = {};  ///< what to do where it isn't so; default: the values

  /// `schedule = "polynomial" or "cosine"`.
  std::string text() const;
  bool holds(const Job& job) const;
};

struct JobKey {
  std::string section;
  std::string name;
  std::string help;  ///< what it means, in one or two sentences
  JobMember member;
  JobRange range = {};
  std::vector<std::string> choices = {};
  std::vector<std::size_t> lengths = {};  ///< of a list; any if empty
  bool required = false;
  std::optional<JobCondition> only_with = {};
  OnResume on_resume = OnResume::fixed;

  /// `optimizer.learning_rate`.
  std::string path() const { return section + "." + name; }
  JobValue default_value() const { return member.get(Job()); }
  /// False where the key means nothing, because of another's value.
  bool counts(const Job& job) const { return !only_with || only_with->holds(job); }
  /// `true or false`, `integer`, `number`, `text`, `list of numbers`, `list of
  /// texts`.
  std::string_view type() const;
  /// What values it takes beyond its type: its range or choices; empty if any.
  std::string allowed() const;
  /// What is wrong with a value of the key's type, as `must be at least 1, got 0`, and a hint; nothing if it
  /// may be.
  struct Complaint {
    std::string message;
    std::string hint;
  };
  std::optional<Complaint> check(const JobValue& value) const;
};

/// Every key, section by section, in the order of Job's members.
const std::vector<JobKey>& job_keys();
/// The sections, in their order.
std::vector<std::string> job_sections();
/// The key of a section and name, or null.
const JobKey* find_job_key(std::string_view section, std::string_view name);
/// The key of a path, `optimizer.schedule`, or null.
const JobKey* find_job_key(std::string_view path);

/// `true or false`, `integer`, `number`, `text`, `list of numbers`, `list of texts`: which of them a value
/// is.
std::string_view job_type_name(const JobValue& value);
/// A value as a job file has it: `0.1`, `"sgd"`, `[0.5, 0.5]`.
std::string job_value_text(const JobValue& value);

/// The keys as Markdown, a table for each section: the reference in docs/job-file.md.
std::string job_reference();
/// The keys as plain text for a terminal of this many columns.
std::string job_help(std::size_t columns = 100);

}  // namespace purine::train
