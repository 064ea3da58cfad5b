#include "purine/train/scheme_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "purine/core/error.h"
#include "purine/ops/cast.h"
#include "purine/session/session.h"
#include "purine/session/whole_values.h"
#include "purine/train/job_keys.h"
#include "purine/train/network.h"
#include "purine/train/placed_graph.h"

namespace purine::train {
namespace {

constexpr double tolerance_per_step = 1e-6;
constexpr double double_tolerance_per_step = 1e-12;
constexpr double double_rounding = 1e-16;
constexpr int devices_at_that = 4;
constexpr double allowed_of_magnified = 8;

bool has_batch_normalization(Graph& graph) {
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    if (graph.op(i).type().starts_with("batch_normalization")) return true;
  }
  return false;
}

struct Comparison {
  double difference = 0;  // the largest
  double size = 1;        // of the largest element, at least 1
};

Comparison compare_elements(const io::HostTensor& expected, const io::HostTensor& got) {
  PURINE_CHECK_EQUAL(expected.name, got.name);
  return with_dtype(expected.info.dtype, [&](auto zero) {
    using T = decltype(zero);
    Comparison comparison;
    const std::span<const T> left = expected.values<T>();
    const std::span<const T> right = got.values<T>();
    PURINE_CHECK_EQUAL(left.size(), right.size());
    for (std::size_t k = 0; k < left.size(); ++k) {
      const double here = std::abs(static_cast<double>(left[k]) - static_cast<double>(right[k]));
      comparison.difference =
          std::max(comparison.difference, std::isnan(here) ? std::numeric_limits<double>::infinity() : here);
      comparison.size = std::max(comparison.size, std::abs(static_cast<double>(left[k])));
    }
    return comparison;
  });
}

template <typename T>
void change_last_bits(std::span<std::byte> bytes) {
  T direction = std::numeric_limits<T>::infinity();
  for (T& value : std::span<T>(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T))) {
    value = std::nextafter(value, direction = -direction);
  }
}

// Rounds every weight to a neighbour of it, up or down in turn.
void change_last_bits(Graph& graph, const Variables& variables) {
  for (const Variable& variable : graph.variables()) {
    if (!variable.trainable()) continue;
    const std::span<std::byte> bytes = variables.at(variable.path()).bytes();
    if (variable.dtype() == DType::f32) change_last_bits<float>(bytes);
    if (variable.dtype() == DType::f64) change_last_bits<double>(bytes);
  }
}

// The largest divisor of n below n: how many devices lie along the scheme's own axis where it has two.
int largest_divisor(int n) {
  for (int divisor = n / 2; divisor > 1; --divisor) {
    if (n % divisor == 0) return divisor;
  }
  return 1;
}

// The keys that are neither told anyway nor at their defaults.
std::string details_of(const Job::Parallel& section) {
  Job job;
  job.parallel = section;
  std::string text;
  for (const JobKey& key : job_keys()) {
    if (key.section != "parallel" || key.name == "scheme" || key.name == "devices" || key.name == "mesh") {
      continue;
    }
    if (key.name == "synchronized_batch_normalization") continue;  // a note says so, of all
    const JobValue value = key.member.get(job);
    if (value == key.default_value()) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key.name, job_value_text(value));
  }
  return text;
}

}  // namespace

double scheme_tolerance(const Job::Optimizer& optimizer, std::int64_t steps, int devices, bool in_double) {
  const bool nesterov = optimizer.name == "nesterov";
  const double momentum = nesterov || optimizer.name == "momentum" ? optimizer.momentum : 0;
  double sum = 0;
  double carried = nesterov ? 1 : 0;  // 1 + m + … so far
  for (std::int64_t step = 0; step < steps; ++step) {
    carried = 1 + momentum * carried;
    sum += carried;
  }
  const double more = std::max(1.0, static_cast<double>(devices) / devices_at_that);
  if (!in_double) return tolerance_per_step * sum * more;
  const bool normalizes = optimizer.name == "adam" || optimizer.name == "adamw";
  const double of_normalizing =
      normalizes ? optimizer.learning_rate * std::min(1.0, double_rounding / optimizer.epsilon) : 0;
  return (double_tolerance_per_step + of_normalizing) * sum * more;
}

SchemeCheck::SchemeCheck(Runtime& runtime, LoadedJob loaded, SchemeCheckOptions options)
    : runtime_(runtime),
      loaded_(std::move(loaded)),
      options_(options),
      devices_(parallel_setup(loaded_).devices()),
      training_set_(open_dataset(loaded_.job, data::Subset::train)),
      task_(find_task(loaded_.job, *training_set_)),
      steps_per_epoch_(train::steps_per_epoch(loaded_.job, training_set_->size())) {
  if (devices_.size() < 2) {
    throw Error("job", "schemes differ on several devices only, and the job has one",
                "name some with --devices, as in --devices emu:0-3")
        .at(loaded_.name);
  }
  Job::Optimizer& optimizer = loaded_.job.optimizer;
  if (!options_.in_double && (optimizer.name == "adam" || optimizer.name == "adamw")) {
    notes_.push_back(fmt::format(
        "momentum stands in for {}, which makes whole steps of gradients that are nothing but rounding",
        optimizer.name));
    optimizer.name = "momentum";
  }
  optimizer.schedule = "constant";
  optimizer.warmup_epochs = 0;
  find_statistics();
  if (normalizes_batches_) {
    notes_.emplace_back(
        "batch normalisation takes the statistics of all samples here; with those of each device's own, the "
        "default, several devices do not compute what one does; a pipeline takes those of each micro-batch, "
        "and is left out");
  }
  if (const std::string& format = loaded_.job.parallel.gradient_format; format != "f32") {
    notes_.push_back(fmt::format("gradients are sent as they are here; {} rounds them on their way", format));
  }
  expected_ = run_with(alone());
  if (normalizes_batches_) measure_magnification();
}

void SchemeCheck::find_statistics() {
  Graph network;
  build_evaluation(training_source(network, loaded_.job, training_set_), loaded_.job, task_.classes);
  for (const Variable& variable : network.variables()) {
    if (!variable.trainable()) statistics_.insert(variable.path());
  }
  normalizes_batches_ = has_batch_normalization(network);
}

void SchemeCheck::measure_magnification() {
  SchemeResult result;
  compare(run_with(alone(), true), result);
  magnification_ = std::max(1.0, allowed_of_magnified * result.difference / result.tolerance);
  if (magnification_ == 1) return;
  notes_.push_back(fmt::format(
      "batch normalisation magnifies rounding here: the last bits of the weights alone make a difference of "
      "{:.1e}, and {:g} times that is allowed; {}fewer steps have less",
      result.difference, allowed_of_magnified,
      options_.in_double ? "" : "--double has next to none of it, and "));
}

Job::Parallel SchemeCheck::alone() const {
  return {.devices = devices_text({devices_.front()})};
}

Job::Parallel SchemeCheck::own_section() const {
  const ParallelSetup setup = parallel_setup(loaded_);
  Job::Parallel own = loaded_.job.parallel;
  own.scheme = std::string(setup.scheme->name);
  own.devices = devices_text(devices_);
  own.mesh = setup.mesh.text();
  own.synchronized_batch_normalization = normalizes_batches_;
  own.gradient_format = "f32";
  return own;
}

bool SchemeCheck::is_comparable(const Scheme& scheme) const {
  return !normalizes_batches_ || scheme.takes("synchronized_batch_normalization");
}

// What is tried: the job's own way first.
std::vector<Job::Parallel> SchemeCheck::sections() const {
  const int count = static_cast<int>(devices_.size());
  const auto section = [&](const Scheme& scheme, const std::string& mesh) {
    Job::Parallel made;
    made.scheme = std::string(scheme.name);
    made.devices = devices_text(devices_);
    made.mesh = mesh;
    made.synchronized_batch_normalization = normalizes_batches_;
    return made;
  };
  std::vector<Job::Parallel> all;
  const auto add = [&](const Job::Parallel& made) {
    const auto same = [&](const Job::Parallel& other) { return made == other; };
    if (std::none_of(all.begin(), all.end(), same)) all.push_back(made);
  };
  if (const Job::Parallel own = own_section(); is_comparable(find_scheme(own.scheme))) add(own);
  const int divisor = largest_divisor(count);
  for (const Scheme& scheme : all_schemes()) {
    if (scheme.divide == nullptr || !is_comparable(scheme)) continue;
    Job::Parallel plain = section(scheme, fmt::format("{}={}", scheme.axis, count));
    add(plain);
    if (scheme.name == "data") {
      for (const char* all_reduce : {"central", "sharded", "ring", "tree"}) {
        plain.all_reduce = all_reduce;
        add(plain);
      }
      plain.all_reduce = "auto";
      plain.update = "one_each";
      add(plain);
    }
    if (!scheme.other_axis.empty() && divisor > 1) {
      const bool data_first = scheme.axis == "data";
      add(section(scheme,
                  fmt::format("{}={},{}={}", data_first ? scheme.axis : scheme.other_axis, count / divisor,
                              data_first ? scheme.other_axis : scheme.axis, divisor)));
    }
  }
  return all;
}

SchemeCheck::Outcome SchemeCheck::run_with(const Job::Parallel& section, bool in_other_bits) const {
  LoadedJob loaded = loaded_;
  loaded.job.parallel = section;
  const Job& job = loaded.job;
  PlacedGraph graph(parallel_setup(loaded), [&](Graph& written, Location device) {
    data::Batch batch = training_source(written, job, training_set_);
    if (options_.in_double) batch.image = ops::cast(batch.image, DType::f64);
    build_training(batch, job, task_.classes, steps_per_epoch_, device);
  });
  SessionOptions options;
  options.seed = static_cast<std::uint64_t>(job.train.seed);
  Session session(runtime_, graph.running(), options);
  if (in_other_bits) change_last_bits(graph.running(), session.variables());
  session.set_iteration(
      std::max<std::int64_t>(0, steps_per_epoch_ - std::max<std::int64_t>(1, options_.steps - 1)));
  session.run_steps(options_.steps);
  session.drain();
  Outcome outcome{whole_values(graph.variables(), session.variables()),
                  find_unequal_replica(graph.variables(), session.variables()).value_or("")};
  std::erase_if(outcome.values, [&](const io::HostTensor& tensor) {
    return !graph.written().find_variable(tensor.name).trainable() && !statistics_.contains(tensor.name);
  });
  return outcome;
}

std::optional<SchemeCheck::Outcome> SchemeCheck::try_with(const Job::Parallel& section,
                                                          SchemeResult& result) const {
  try {
    return run_with(section);
  } catch (const Error& error) {
    // What is said of the division, before anything runs.
    static constexpr std::string_view divisions[] = {"job", "parallel", "partition", "pipeline"};
    const bool is_division =
        std::find(std::begin(divisions), std::end(divisions), error.component()) != std::end(divisions);
    if (!is_division || section == own_section()) throw;
    result.impossible = error.message();
    return std::nullopt;
  }
}

void SchemeCheck::compare(const Outcome& got, SchemeResult& result) const {
  result.unequal_replica = got.unequal_replica;
  const double base =
      magnification_ * scheme_tolerance(loaded_.job.optimizer, options_.steps,
                                        static_cast<int>(devices_.size()), options_.in_double);
  result.tolerance = base;
  double worst = -1;
  PURINE_CHECK_EQUAL(expected_.values.size(), got.values.size());
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const auto [difference, size] = compare_elements(expected_.values[i], got.values[i]);
    const double share = difference / (base * size);
    if (share <= worst) continue;
    worst = share;
    result.difference = difference;
    result.tolerance = base * size;
    result.variable = got.values[i].name;
  }
}

bool SchemeCheck::run(const std::function<void(const SchemeResult&)>& tell) {
  bool passed = true;
  for (const Job::Parallel& section : sections()) {
    SchemeResult result;
    result.scheme = section.scheme;
    result.mesh = section.mesh;
    result.details = details_of(section);
    if (const auto got = try_with(section, result)) compare(*got, result);
    passed = passed && result.passed();
    tell(result);
  }
  return passed;
}

}  // namespace purine::train
