#include "purine/train/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

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
    const std::int64_t ranks = devices.back().rank - devices.front().rank + 1;
    const std::int64_t of_a_host = count % ranks == 0 ? count / ranks : 1;
    const bool is_grid = ranks > 1 && of_a_host > 1;
    if (is_grid) {
      const std::string grid = fmt::format("data={},model={}", ranks, of_a_host);
      add(place, {.scheme = "hybrid", .mesh = grid});
      add(place, {.scheme = "tensor", .mesh = grid});
    }
    // More stages than this leave most of them empty.
    constexpr std::int64_t most_stages = 16;
    const auto add_pipelines = [&](const std::string& mesh, std::int64_t stages) {
      for (const std::int64_t each : {1, 2, 4}) {
        add(place, {.scheme = "pipeline", .mesh = mesh, .micro_batches = each * stages});
      }
    };
    if (count <= most_stages) add_pipelines("", count);
    if (is_grid && of_a_host <= most_stages) {
      add_pipelines(fmt::format("data={},stage={}", ranks, of_a_host), of_a_host);
    }
  }

  void add(const Place& place, const Job::Parallel& parallel) {
    const LoadedJob job = on_place(place, parallel);
    PlannedRun run;
    run.parallel = job.job.parallel;
    run.text = describe(run.parallel);
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
    runs_.push_back(std::move(run));
  }

  static std::string describe(const Job::Parallel& parallel) {
    std::string text = parallel.scheme;
    if (!parallel.mesh.empty()) text += " " + parallel.mesh;
    if (parallel.all_reduce != "auto") text += ", all_reduce = " + parallel.all_reduce;
    if (parallel.update != "everywhere") text += ", update = " + parallel.update;
    if (parallel.micro_batches > 0) text += fmt::format(", {} micro-batches", parallel.micro_batches);
    if (!parallel.shares.empty()) text += ", by speed";
    return fmt::format("{} on {}", text, parallel.devices);
  }

  const LoadedJob& loaded_;
  const SimulatedImages& images_;
  const sim::Cluster& cluster_;
  const PlanOptions& options_;
  const std::vector<Location> all_;
  std::map<Model, double> speeds_;
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
