#include "purine/train/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "purine/parallel/schemes.h"
#include "purine/session/runtime.h"
#include "purine/train/job_keys.h"
#include "purine/train/parallel_section.h"
#include "purine/train/schemes.h"

namespace purine::train {
namespace {

// What tells the speeds of two devices apart.
using Model = std::tuple<DeviceKind, double, double, double, double, int>;

Model model_of(const sim::Cluster& cluster, Location location) {
  const sim::Host& host = cluster.hosts[static_cast<std::size_t>(location.rank)];
  const bool on_cpu = location.kind == DeviceKind::cpu;
  const sim::Processor& processor =
      on_cpu ? host.cpu.core : host.gpus[static_cast<std::size_t>(location.index)].processor;
  return {location.kind,           processor.f32_operations,
          processor.reached,       processor.memory_bytes_per_second,
          processor.start_seconds, on_cpu ? host.cpu.cores : 1};
}

// Devices that share a job, and the hosts that they are on.
struct Place {
  sim::Cluster cluster;
  std::vector<Location> devices;
};

// One device's host, or one device, alone: as rank 0.
Place alone(const sim::Cluster& cluster, std::vector<Location> devices) {
  Place place{
      {cluster.name, {cluster.hosts[static_cast<std::size_t>(devices.front().rank)]}, cluster.network_switch},
      {}};
  for (Location& device : devices) device.rank = 0;
  place.devices = std::move(devices);
  return place;
}

// Of the devices that share a layer or follow each other in a pipeline: more stages leave most of them empty.
constexpr std::int64_t largest_group = 16;

constexpr double never = std::numeric_limits<double>::infinity();

// What was simulated; it takes forever if it can't be.
struct Candidate {
  Place place;
  Job::Parallel parallel;
  double seconds = never;
};

class Planner {
 public:
  Planner(const LoadedJob& loaded, const SimulatedImages& images, const sim::Cluster& cluster,
          const PlanOptions& options)
      : loaded_(loaded), images_(images), cluster_(cluster), options_(options), all_(cluster.devices()) {}

  std::vector<PlannedRun> run() {
    const Location best = fastest();
    add(alone(cluster_, {best}), {.scheme = "single"});
    std::vector<Location> host;
    std::copy_if(all_.begin(), all_.end(), std::back_inserter(host),
                 [&](const Location& device) { return device.rank == best.rank; });
    if (host.size() > 1 && host.size() < all_.size()) add_schemes(alone(cluster_, host));
    if (all_.size() > 1) add_schemes({cluster_, all_});
    refine();
    std::stable_sort(runs_.begin(), runs_.end(), [](const PlannedRun& a, const PlannedRun& b) {
      if (a.obstacle.empty() != b.obstacle.empty()) return a.obstacle.empty();
      return a.obstacle.empty() && a.step_seconds < b.step_seconds;
    });
    return std::move(runs_);
  }

 private:
  // The first of equals.
  Location fastest() {
    Location best = all_.front();
    for (const Location& device : all_) {
      if (speed_of(device) > speed_of(best)) best = device;
    }
    return best;
  }

  // Images a second of one device alone with an even share of the batch, or 0 if it can't; 1 for all if they
  // are alike.
  double speed_of(Location device) {
    const auto [found, inserted] = speeds_.try_emplace(model_of(cluster_, device), 1.0);
    if (!inserted || models_of(all_).size() == 1) return found->second;
    const auto count = static_cast<std::int64_t>(all_.size());
    const Place place = alone(cluster_, {device});
    LoadedJob job = on_place(place, {.scheme = "single"});
    job.job.data.batch = (loaded_.job.data.batch + count - 1) / count;
    try {
      found->second = simulate_on(place, job).images_per_second;
    } catch (const Error&) {
      found->second = 0;
    }
    return found->second;
  }

  SimulatedJob simulate_on(const Place& place, const LoadedJob& job) const {
    return simulate(job, images_, place.cluster,
                    {.simulation = options_.simulation, .against_one_device = false});
  }

  LoadedJob on_place(const Place& place, Job::Parallel parallel) const {
    LoadedJob job = loaded_;
    for (const JobKey& key : job_keys()) {
      if (key.section == "parallel") job.origins.erase(key.path());
    }
    parallel.devices = text_of(place.devices);
    parallel.stall_limit = loaded_.job.parallel.stall_limit;
    parallel.synchronized_batch_normalization =
        find_scheme(parallel.scheme).takes("synchronized_batch_normalization") &&
        loaded_.job.parallel.synchronized_batch_normalization;
    const bool may_narrow = parallel.scheme != "single" && parallel.all_reduce == "auto";
    parallel.gradient_format = may_narrow ? loaded_.job.parallel.gradient_format : "f32";
    job.job.parallel = std::move(parallel);
    job.origins["parallel.devices"] = "--cluster";
    return job;
  }

  std::set<Model> models_of(const std::vector<Location>& devices) const {
    std::set<Model> models;
    for (const Location& device : devices) models.insert(model_of(cluster_, device));
    return models;
  }

  // Whole numbers in the ratio of the devices' speeds. The devices' ranks are those of the cluster.
  std::vector<double> shares_of(const std::vector<Location>& devices) {
    double slowest = 0;
    for (const Location& device : devices) {
      const double speed = speed_of(device);
      if (speed > 0 && (slowest == 0 || speed < slowest)) slowest = speed;
    }
    std::vector<double> shares;
    constexpr double resolution = 16;
    for (const Location& device : devices) {
      shares.push_back(std::max(1.0, std::round(resolution * speed_of(device) / slowest)));
    }
    return shares;
  }

  static std::string text_of(const std::vector<Location>& devices) {
    // The devices of other ranks than 0 have their ranks in the text; so all must have.
    std::string text = devices_text(devices);
    if (devices.front().rank == 0 && text.find('/') != std::string::npos) text = "0/" + text;
    return text;
  }

  void add_schemes(const Place& place) {
    const std::vector<Location>& devices = place.devices;
    // A host's own devices are taken as alike.
    const bool differ = devices == all_ && models_of(devices).size() > 1;
    const auto add_data = [&](Job::Parallel parallel) {
      add(place, parallel);
      if (!differ) return;
      parallel.shares = shares_of(devices);
      add(place, parallel);
    };
    add_data({.scheme = "data"});
    for (const char* all_reduce : {"central", "sharded", "ring", "tree"}) {
      add_data({.scheme = "data", .all_reduce = all_reduce});
    }
    add_data({.scheme = "data", .update = "one_each"});
    add_data({.scheme = "sharded"});
    add_data({.scheme = "hybrid"});
    add(place, {.scheme = "tensor"});
    const auto count = static_cast<std::int64_t>(devices.size());
    const std::vector<std::int64_t> groups = groups_of(devices);
    for (const std::int64_t group : groups) {
      const std::string grid = fmt::format("data={},model={}", count / group, group);
      add(place, {.scheme = "hybrid", .mesh = grid});
      add(place, {.scheme = "tensor", .mesh = grid});
    }
    const auto add_pipelines = [&](const std::string& mesh, std::int64_t stages,
                                   const std::vector<double>& stage_shares = {}) {
      for (const std::int64_t each : {1, 2, 4}) {
        add(place, {.scheme = "pipeline",
                    .mesh = mesh,
                    .micro_batches = each * stages,
                    .stage_shares = stage_shares});
      }
    };
    if (count <= largest_group) add_pipelines("", count);
    if (count <= largest_group && differ) add_pipelines("", count, shares_of(devices));
    for (const std::int64_t group : groups) {
      add_pipelines(fmt::format("data={},stage={}", count / group, group), group);
    }
  }

  // Sizes of equal groups of neighbours, that grids have as one axis: parts of a host's devices, or whole
  // hosts.
  static std::vector<std::int64_t> groups_of(const std::vector<Location>& devices) {
    const auto count = static_cast<std::int64_t>(devices.size());
    const std::int64_t ranks = devices.back().rank - devices.front().rank + 1;
    if (count % ranks != 0) return {};
    const std::int64_t of_a_host = count / ranks;
    std::vector<std::int64_t> groups;
    for (std::int64_t group = 2; group <= std::min(largest_group, count / 2); ++group) {
      const bool lies_well = of_a_host % group == 0 || group % of_a_host == 0;
      if (count % group == 0 && lies_well) groups.push_back(group);
    }
    return groups;
  }

  // From the best of each kind to better ones nearby.
  void refine() {
    std::map<std::string, Candidate> kinds;
    double best = never;
    for (const Candidate& candidate : candidates_) {
      const auto [found, added] = kinds.try_emplace(candidate.parallel.scheme, candidate);
      if (candidate.seconds < found->second.seconds) found->second = candidate;
      best = std::min(best, candidate.seconds);
    }
    constexpr double within_reach = 1.5;  // of the best
    for (const auto& [scheme, candidate] : kinds) {
      if (scheme == "single" || !(candidate.seconds < within_reach * best)) continue;
      Candidate at = candidate;
      if (scheme == "hybrid") at = climb(at, [this](const auto& from) { return other_layers(from); });
      if (scheme == "pipeline") at = climb(at, [](const auto& from) { return other_stages(from); });
      climb(at, [](const auto& from) { return other_reductions(from); });
    }
  }

  using Neighbours = std::function<std::vector<Job::Parallel>(const Job::Parallel&)>;

  // The best that is reached by going to the best neighbour as long as it is better.
  Candidate climb(Candidate best, const Neighbours& neighbours) {
    constexpr int most_rounds = 8;
    for (int round = 0; round < most_rounds; ++round) {
      const Candidate from = best;
      for (Job::Parallel& next : neighbours(from.parallel)) {
        const Candidate tried = add(from.place, std::move(next));
        if (tried.seconds < best.seconds) best = tried;
      }
      if (!(best.seconds < from.seconds)) break;
    }
    return best;
  }

  static std::vector<Job::Parallel> other_reductions(const Job::Parallel& from) {
    std::vector<Job::Parallel> all;
    for (const std::int64_t kib : {0, 256, 1024, 4096, 16384}) {
      Job::Parallel& next = all.emplace_back(from);
      next.bucket_kib = kib;
    }
    for (const char* all_reduce : {"auto", "central", "sharded", "ring", "tree"}) {
      Job::Parallel& next = all.emplace_back(from);
      next.all_reduce = all_reduce;
    }
    return all;
  }

  // One layer is divided in another way (not at all, by output, or by input), or two that follow each other
  // are: the first one's output is the second one's input, so one alone can be for the worse. Where none are
  // named, the hybrid divides all in turn by output and by input.
  std::vector<Job::Parallel> other_layers(const Job::Parallel& from) const {
    Graph graph;
    training_on(images_)(loaded_.job, graph, Location{});
    const std::vector<std::string> layers = parallel::fully_connected_layers(graph);
    const auto has = [](const std::vector<std::string>& list, const std::string& layer) {
      return std::find(list.begin(), list.end(), layer) != list.end();
    };
    enum class Way : std::uint8_t { whole, output, input };
    std::vector<Way> in_turn;
    std::vector<Way> ways;
    for (const std::string& layer : layers) {
      in_turn.push_back(in_turn.size() % 2 == 0 ? Way::output : Way::input);
      ways.push_back(has(from.output_layers, layer)  ? Way::output
                     : has(from.input_layers, layer) ? Way::input
                                                     : Way::whole);
    }
    if (from.output_layers.empty() && from.input_layers.empty()) ways = in_turn;
    std::set<std::vector<Way>> others;
    constexpr std::array every_way{Way::whole, Way::output, Way::input};
    for (std::size_t changed = 0; changed < layers.size(); ++changed) {
      for (const Way way : every_way) {
        std::vector<Way> next_ways = ways;
        next_ways[changed] = way;
        others.insert(next_ways);
        for (const Way following : every_way) {
          if (changed + 1 == layers.size()) break;
          next_ways[changed + 1] = following;
          others.insert(next_ways);
        }
      }
    }
    others.erase(ways);
    others.erase(std::vector<Way>(layers.size(), Way::whole));  // it is data parallelism
    std::vector<Job::Parallel> all;
    for (const std::vector<Way>& next_ways : others) {
      Job::Parallel& next = all.emplace_back(from);
      next.output_layers.clear();
      next.input_layers.clear();
      for (std::size_t i = 0; i < layers.size() && next_ways != in_turn; ++i) {
        if (next_ways[i] == Way::output) next.output_layers.push_back(layers[i]);
        if (next_ways[i] == Way::input) next.input_layers.push_back(layers[i]);
      }
    }
    return all;
  }

  // One stage has more or less of the work.
  static std::vector<Job::Parallel> other_stages(const Job::Parallel& from) {
    std::vector<double> shares = from.stage_shares;
    if (shares.empty()) {
      const std::size_t axis = from.mesh.rfind('=');
      const std::size_t stages =
          axis == std::string::npos ? count_of(from.devices) : std::stoul(from.mesh.substr(axis + 1));
      shares.assign(stages, 16);
    }
    std::vector<Job::Parallel> all;
    for (std::size_t stage = 0; stage < shares.size(); ++stage) {
      for (const double factor : {0.5, 0.8, 0.92, 1.08, 1.25, 2.0}) {
        Job::Parallel& next = all.emplace_back(from);
        next.stage_shares = shares;
        next.stage_shares[stage] = std::clamp(std::round(100 * factor * shares[stage]) / 100, 1.0, 256.0);
      }
    }
    return all;
  }

  static std::size_t count_of(const std::string& devices) { return parse_devices(devices).size(); }

  // What was tried before isn't tried again.
  Candidate add(const Place& place, const Job::Parallel& parallel) {
    const LoadedJob job = on_place(place, parallel);
    PlannedRun run;
    run.parallel = job.job.parallel;
    run.text = describe(run.parallel);
    run.is_plain = run.text == "data on " + run.parallel.devices;
    const auto [tried, is_new] = tried_.try_emplace(run.text, never);
    if (!is_new) return {place, run.parallel, tried->second};
    try {
      const SimulatedJob simulated = simulate_on(place, job);
      run.step_seconds = simulated.result.step_seconds;
      run.images_per_second = simulated.images_per_second;
      run.bytes_sent = simulated.result.bytes_sent;
      for (const sim::DeviceUse& device : simulated.result.devices) {
        const bool counts = device.location.kind == place.devices.front().kind;
        if (counts) run.peak_bytes = std::max(run.peak_bytes, device.peak_bytes);
      }
    } catch (const Error& error) {
      run.obstacle = error.message();
    }
    if (options_.tried) options_.tried(run);
    if (run.obstacle.empty()) tried->second = run.step_seconds;
    runs_.push_back(run);
    candidates_.push_back({place, run.parallel, tried->second});
    return candidates_.back();
  }

  static std::string describe(const Job::Parallel& parallel) {
    std::string text = parallel.scheme;
    if (!parallel.mesh.empty()) text += " " + parallel.mesh;
    if (parallel.all_reduce != "auto") text += ", all_reduce = " + parallel.all_reduce;
    if (parallel.gradient_format != "f32") text += ", gradients as " + parallel.gradient_format;
    if (parallel.update != "everywhere") text += ", update = " + parallel.update;
    if (!parallel.output_layers.empty()) {
      text += fmt::format(", {} by output", fmt::join(parallel.output_layers, " and "));
    }
    if (!parallel.input_layers.empty()) {
      text += fmt::format(", {} by input", fmt::join(parallel.input_layers, " and "));
    }
    if (parallel.bucket_kib != Job::Parallel().bucket_kib) {
      text += fmt::format(", buckets of {} KiB", parallel.bucket_kib);
    }
    if (parallel.micro_batches > 0) text += fmt::format(", {} micro-batches", parallel.micro_batches);
    if (!parallel.stage_shares.empty()) {
      text += fmt::format(", stages of {}", fmt::join(parallel.stage_shares, " : "));
    }
    if (!parallel.shares.empty()) text += ", by speed";
    return fmt::format("{} on {}", text, parallel.devices);
  }

  const LoadedJob& loaded_;
  const SimulatedImages& images_;
  const sim::Cluster& cluster_;
  const PlanOptions& options_;
  const std::vector<Location> all_;
  std::map<Model, double> speeds_;
  std::map<std::string, double> tried_;  // seconds of a step, by text
  std::vector<Candidate> candidates_;
  std::vector<PlannedRun> runs_;
};

}  // namespace

std::vector<PlannedRun> plan(const LoadedJob& loaded, const SimulatedImages& images,
                             const sim::Cluster& cluster, const PlanOptions& options) {
  return Planner(loaded, images, cluster, options).run();
}

std::string parallel_section_text(const Job::Parallel& parallel) {
  Job job;
  job.parallel = parallel;
  std::string text = "[parallel]\n";
  for (const JobKey& key : job_keys()) {
    if (key.section != "parallel") continue;
    const JobValue value = key.member.get(job);
    if (value != key.default_value()) text += fmt::format("{} = {}\n", key.name, job_value_text(value));
  }
  return text;
}

}  // namespace purine::train
