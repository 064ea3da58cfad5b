#include "purine/session/convolution_choices.h"

#include <sys/file.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "purine/core/error.h"
#include "purine/core/json_helpers.h"
#include "purine/io/atomic_file.h"

namespace purine {
namespace {

using cpu::ConvolutionAlgorithm;
using Json = nlohmann::json;

constexpr std::string_view format = "purine convolution choices 1";

std::optional<ConvolutionAlgorithm> algorithm_of(std::string_view name) {
  for (const auto algorithm : cpu::convolution_algorithms) {
    if (cpu::name_of(algorithm) == name) return algorithm;
  }
  return std::nullopt;
}

/// The file's content, as far as it is one: {"format": …, "machines": {machine: {convolution: algorithm}}}.
Json read(const std::filesystem::path& file) {
  const Json empty = {{"format", format}, {"machines", Json::object()}};
  std::error_code ignored;
  if (file.empty() || !std::filesystem::is_regular_file(file, ignored)) return empty;
  try {
    Json json = parse_json(io::read_file(file));
    if (json.at("format") == format && json.at("machines").is_object()) return json;
  } catch (const Error&) {
  } catch (const Json::exception&) {
  }
  return empty;
}

}  // namespace

ConvolutionChoices::ConvolutionChoices(std::filesystem::path file)
    : file_(std::move(file)), machine_(cpu::measured_machine()) {
  const Json json = read(file_);
  const auto found = json["machines"].find(machine_);
  if (found == json["machines"].end() || !found->is_object()) return;
  for (const auto& [convolution, algorithm] : found->items()) {
    if (algorithm.is_string()) choices_[convolution] = algorithm;
  }
}

std::filesystem::path ConvolutionChoices::default_file() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::filesystem::path folder = variable("PURINE_CACHE");
  if (folder == "off") return {};
  if (folder.empty() && !variable("XDG_CACHE_HOME").empty()) folder = variable("XDG_CACHE_HOME") + "/purine";
  if (folder.empty() && !variable("HOME").empty()) folder = variable("HOME") + "/.cache/purine";
  return folder.empty() ? folder : folder / "convolutions.json";
}

ConvolutionAlgorithm ConvolutionChoices::choose(cpu::ConvolutionPass pass,
                                                const cpu::ConvolutionProblem& problem) {
  const std::string convolution = cpu::describe(pass, problem);
  std::unique_lock lock(mutex_);
  while (true) {
    const std::optional<ConvolutionAlgorithm> known = algorithm_of(choices_[convolution]);
    if (known && cpu::can_compute(*known, problem)) return *known;
    if (under_way_.insert(convolution).second) break;
    ended_.wait(lock);
  }
  Memory memory = take_memory();
  lock.unlock();
  std::optional<ConvolutionAlgorithm> measured;
  try {
    measured = cpu::measure_convolution(pass, problem, *memory);
  } catch (...) {
    lock.lock();
    end_measuring(convolution, std::move(memory));
    throw;
  }
  lock.lock();
  choices_[convolution] = cpu::name_of(*measured);
  changed_ = true;
  ++measured_;
  end_measuring(convolution, std::move(memory));
  return *measured;
}

ConvolutionChoices::Memory ConvolutionChoices::take_memory() {
  if (memories_.empty()) return std::make_unique<cpu::MeasurementMemory>();
  Memory memory = std::move(memories_.back());
  memories_.pop_back();
  return memory;
}

void ConvolutionChoices::end_measuring(const std::string& convolution, Memory memory) {
  under_way_.erase(convolution);
  memories_.push_back(std::move(memory));
  ended_.notify_all();
}

void ConvolutionChoices::save() {
  memories_.clear();
  if (!changed_ || file_.empty()) return;
  changed_ = false;
  try {
    io::make_folder(file_.parent_path());
    // While it is locked nobody else replaces the file between our reading and replacing it. Where locks
    // don't work somebody may, and then what one of the two has measured is measured once more some day.
    std::filesystem::path lock_path = file_;
    const io::File lock = io::File::open_to_append(lock_path += ".lock");
    static_cast<void>(::flock(lock.descriptor(), LOCK_EX));
    Json json = read(file_);
    Json& own = json["machines"][machine_];
    if (!own.is_object()) own = Json::object();
    for (const auto& [convolution, algorithm] : choices_) own[convolution] = algorithm;
    io::write_file(file_, json.dump(1) + "\n");
  } catch (const Error&) {
  }
}

}  // namespace purine
