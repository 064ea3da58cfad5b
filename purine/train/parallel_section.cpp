#include "purine/train/parallel_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>

#include "purine/parallel/schemes.h"
#include "purine/parallel/spec.h"
#include "purine/session/runtime.h"
#include "purine/train/job_keys.h"

namespace purine::train {
namespace {

std::vector<Location> at_each_rank(const std::vector<Location>& devices, int ranks) {
  std::vector<Location> all;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    for (Location device : devices) {
      device.rank = rank;
      all.push_back(device);
    }
  }
  return all;
}

void check_ranks(const LoadedJob& loaded, const std::vector<Location>& devices, int ranks) {
  const std::string processes = fmt::format("the run has {} process{}", ranks, ranks == 1 ? "" : "es");
  for (const Location& device : devices) {
    if (device.rank < ranks) continue;
    throw loaded.error("parallel.devices", fmt::format("names {}, and {}", device.text(), processes),
                       "start one process a rank, as with mpirun -n, or name devices without ranks");
  }
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    if (std::any_of(devices.begin(), devices.end(), [&](const Location& any) { return any.rank == rank; }))
      continue;
    throw loaded.error("parallel.devices", fmt::format("names no device of rank {}, and {}", rank, processes),
                       "name devices without ranks to have them at every rank");
  }
}

std::vector<Location> find_devices(const LoadedJob& loaded, int ranks) {
  const std::string& text = loaded.job.parallel.devices;
  std::vector<Location> devices = {Location{}};
  if (!text.empty()) {
    try {
      devices = parse_devices(text);
    } catch (const Error& error) {
      throw loaded.error("parallel.devices", error.message(), error.hint());
    }
  }
  if (text.find('/') == std::string::npos) return at_each_rank(devices, std::max(ranks, 1));
  if (ranks > 0) check_ranks(loaded, devices, ranks);
  return devices;
}

const Scheme& choose_scheme(const LoadedJob& loaded, std::size_t devices) {
  const std::string& name = loaded.job.parallel.scheme;
  if (name == "auto") return find_scheme(devices > 1 ? "data" : "single");
  if (name == "single" && devices > 1) {
    throw loaded.error("parallel.scheme", fmt::format("is \"single\", and there are {} devices", devices),
                       "name one device, or take another scheme");
  }
  if (name != "single" && devices == 1 && loaded.job.parallel.devices.empty()) {
    throw loaded.error("parallel.scheme", fmt::format("is \"{}\", and no devices are named", name),
                       "set parallel.devices, give --devices, or start several processes with mpirun");
  }
  return find_scheme(name);
}

// The keys that mean something wherever anything is divided.
bool is_for_all_divided(std::string_view key) {
  return key == "mesh" || key == "all_reduce" || key == "gradient_format" || key == "bucket_kib";
}

void check_keys(const LoadedJob& loaded, const Scheme& scheme) {
  for (const JobKey& key : job_keys()) {
    if (key.section != "parallel" || key.name == "scheme" || key.name == "devices" ||
        key.name == "stall_limit")
      continue;
    const bool means_something =
        scheme.takes(key.name) || (scheme.name != "single" && is_for_all_divided(key.name));
    if (means_something || key.member.get(loaded.job) == key.default_value()) continue;
    std::vector<std::string_view> others;
    for (const Scheme& other : all_schemes()) {
      if (other.takes(key.name)) others.push_back(other.name);
    }
    throw loaded.error(key.path(), fmt::format("does not go with scheme = \"{}\"", scheme.name),
                       others.empty()
                           ? "one device divides nothing"
                           : fmt::format("{} {} it", fmt::join(others, ", "),
                                         others.size() == 1 ? "is the scheme that takes" : "take"));
  }
}

void check_gradient_format(const LoadedJob& loaded) {
  const Job::Parallel& keys = loaded.job.parallel;
  if (keys.gradient_format == "f32" || keys.all_reduce == "auto") return;
  throw loaded.error("parallel.gradient_format",
                     fmt::format("is \"{}\", and all_reduce = \"{}\"", keys.gradient_format, keys.all_reduce),
                     "narrow gradients are summed in the cheapest way: leave all_reduce out");
}

parallel::Mesh make_mesh(const LoadedJob& loaded, const Scheme& scheme, std::vector<Location> devices) {
  const std::string& text = loaded.job.parallel.mesh;
  if (text.empty()) return parallel::Mesh(std::move(devices), scheme.axis);
  std::optional<parallel::Mesh> mesh;
  try {
    mesh.emplace(text, std::move(devices));
  } catch (const Error& error) {
    throw loaded.error("parallel.mesh", error.message(),
                       error.hint().empty()
                           ? fmt::format("left empty, it has all devices along the axis {}", scheme.axis)
                           : error.hint());
  }
  bool has_own_axis = false;
  for (const parallel::MeshAxis& axis : mesh->axes()) {
    has_own_axis = has_own_axis || axis.name == scheme.axis;
    if (scheme.has_axis(axis.name)) continue;
    throw loaded.error(
        "parallel.mesh",
        fmt::format("has an axis {}, which scheme = \"{}\" does not know", axis.name, scheme.name),
        scheme.other_axis.empty()
            ? fmt::format("its axis is {}", scheme.axis)
            : fmt::format("its axes are {} and, where wanted, {}", scheme.axis, scheme.other_axis));
  }
  if (!has_own_axis) {
    throw loaded.error("parallel.mesh", fmt::format("has no axis {}, along which scheme = \"{}\" divides",
                                                    scheme.axis, scheme.name));
  }
  return *mesh;
}

void check_stage_shares(const LoadedJob& loaded, const Scheme& scheme, const parallel::Mesh& mesh) {
  const std::size_t given = loaded.job.parallel.stage_shares.size();
  const auto axis = std::find_if(mesh.axes().begin(), mesh.axes().end(),
                                 [&](const parallel::MeshAxis& each) { return each.name == scheme.axis; });
  if (given == 0 || axis == mesh.axes().end() || given == static_cast<std::size_t>(axis->size)) return;
  throw loaded.error("parallel.stage_shares", fmt::format("has {} numbers, and the axis {} {} devices", given,
                                                          axis->name, axis->size));
}

void set_shares(const LoadedJob& loaded, parallel::Mesh& mesh) {
  const std::vector<double>& given = loaded.job.parallel.shares;
  if (given.empty()) return;
  std::vector<std::int64_t> shares;
  for (const double share : given) {
    if (share != std::floor(share)) {
      throw loaded.error("parallel.shares", fmt::format("must be whole numbers, got {}", share));
    }
    shares.push_back(static_cast<std::int64_t>(share));
  }
  const auto data = std::find_if(mesh.axes().begin(), mesh.axes().end(),
                                 [](const parallel::MeshAxis& axis) { return axis.name == "data"; });
  if (data == mesh.axes().end()) {
    throw loaded.error("parallel.shares", fmt::format("needs an axis data; the mesh is {}", mesh.text()));
  }
  if (shares.size() != static_cast<std::size_t>(data->size)) {
    throw loaded.error("parallel.shares", fmt::format("has {} numbers, and the axis data {} devices",
                                                      shares.size(), data->size));
  }
  mesh.set_shares("data", std::move(shares));
}

// The names of the axes of a mesh, right or wrong: make_mesh tells what is wrong.
std::vector<std::string> axis_names(std::string_view mesh) {
  std::vector<std::string> names;
  while (!mesh.empty()) {
    const std::string_view axis = mesh.substr(0, mesh.find(','));
    names.emplace_back(axis.substr(0, axis.find('=')));
    mesh.remove_prefix(std::min(axis.size() + 1, mesh.size()));
  }
  return names;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool goes_with(const Scheme& scheme, const std::vector<std::string>& axes) {
  return std::all_of(axes.begin(), axes.end(),
                     [&](const std::string& axis) { return scheme.has_axis(axis); }) &&
         (axes.empty() || has(axes, scheme.axis));
}

void check_layers(const LoadedJob& loaded, const std::string& key, const std::vector<std::string>& layers,
                  Graph& graph) {
  const parallel::Mesh mesh{"cpu:0"};
  for (const std::string& layer : layers) {
    try {
      parallel::Specs specs(mesh);
      parallel::divide_layer(specs, graph, layer, parallel::Channels::output, "data");
    } catch (const Error& error) {
      throw loaded.error(key, fmt::format("names '{}': {}", layer, error.message()), error.hint());
    }
  }
}

parallel::AllReduce find_all_reduce(std::string_view name) {
  if (name == "central") return parallel::central_all_reduce;
  if (name == "sharded") return parallel::sharded_all_reduce;
  if (name == "ring") return parallel::ring_all_reduce;
  if (name == "tree") return parallel::tree_all_reduce;
  return {};  // the cheapest
}

parallel::Wire find_wire(std::string_view format) {
  if (format == "f16") return ops::NarrowFormat::f16;
  if (format == "bf16") return ops::NarrowFormat::bf16;
  return {};  // as they are
}

}  // namespace

void leave_out_of_other_schemes(LoadedJob& loaded, const std::set<std::string>& set_beside) {
  if (!set_beside.contains("parallel.scheme")) return;
  const std::string& name = loaded.job.parallel.scheme;
  const Scheme& scheme = find_scheme(name == "auto" ? "data" : name);
  const auto leave_out = [&](const JobKey& key) {
    if (set_beside.contains(key.path()) || !loaded.origins.contains(key.path())) return;
    key.member.set(loaded.job, key.default_value());
    loaded.origins.erase(key.path());
  };
  const std::string mesh = loaded.job.parallel.mesh;
  if (scheme.divide == nullptr || !goes_with(scheme, axis_names(mesh))) {
    leave_out(*find_job_key("parallel.mesh"));
  }
  const std::vector<std::string> axes = axis_names(loaded.job.parallel.mesh);
  const bool divides_samples = axes.empty() ? scheme.axis == "data" : has(axes, "data");
  // Shares are those of the mesh that they were written for.
  if (!divides_samples || loaded.job.parallel.mesh != mesh) leave_out(*find_job_key("parallel.shares"));
  for (const JobKey& key : job_keys()) {
    if (key.section != "parallel" || scheme.takes(key.name)) continue;
    const bool is_of_another = std::any_of(all_schemes().begin(), all_schemes().end(),
                                           [&](const Scheme& other) { return other.takes(key.name); });
    if (is_of_another || (scheme.divide == nullptr && is_for_all_divided(key.name))) leave_out(key);
  }
}

std::string devices_text(const std::vector<Location>& devices) {
  std::string text;
  for (std::size_t i = 0; i < devices.size();) {
    std::size_t end = i + 1;
    while (end < devices.size() && devices[end].rank == devices[i].rank &&
           devices[end].kind == devices[i].kind && devices[end].index == devices[end - 1].index + 1) {
      ++end;
    }
    std::string item = devices[i].text();
    if (devices[i].rank == 0) item = item.substr(item.find('/') + 1);
    if (end - i > 1) item += "-" + std::to_string(devices[end - 1].index);
    text += (text.empty() ? "" : ",") + item;
    i = end;
  }
  return text;
}

std::string ParallelSetup::text() const {
  if (!is_divided()) return devices_text(devices());
  std::string text = devices_text(devices());
  const std::int32_t ranks = devices().back().rank + 1;
  std::vector<Location> first;
  std::copy_if(devices().begin(), devices().end(), std::back_inserter(first),
               [](const Location& device) { return device.rank == 0; });
  if (ranks > 1 && devices() == at_each_rank(first, ranks)) {
    text = fmt::format("{} at each of {} ranks", devices_text(first), ranks);
  }
  return fmt::format("{} over {} ({})", scheme->title, text, mesh.text());
}

std::string local_devices_text(const std::vector<Location>& devices, std::int32_t rank) {
  std::vector<Location> own;
  for (Location device : devices) {
    if (device.rank != rank) continue;
    device.rank = 0;
    own.push_back(device);
  }
  return devices_text(own);
}

parallel::PartitionOptions ParallelSetup::partition_options() const {
  const Job::Parallel& keys = loaded.job.parallel;
  return {.all_reduce = find_all_reduce(keys.all_reduce),
          .gradient_wire = find_wire(keys.gradient_format),
          .bucket_bytes = static_cast<std::size_t>(keys.bucket_kib) << 10U,
          .synchronize_batch_normalization = keys.synchronized_batch_normalization};
}

parallel::Partitioned ParallelSetup::divide(Graph& graph) const {
  const Job::Parallel& keys = loaded.job.parallel;
  check_layers(loaded, "parallel.output_layers", keys.output_layers, graph);
  check_layers(loaded, "parallel.input_layers", keys.input_layers, graph);
  for (const std::string& layer : keys.input_layers) {
    if (!has(keys.output_layers, layer)) continue;
    throw loaded.error("parallel.input_layers",
                       fmt::format("names '{}', which parallel.output_layers names too", layer),
                       "a layer is divided in one of the two ways");
  }
  // One that divides samples as well divides something in any network.
  if (scheme->axis == "model" && keys.output_layers.empty() && keys.input_layers.empty() &&
      parallel::fully_connected_layers(graph).empty()) {
    throw loaded.error(
        "parallel.scheme",
        fmt::format("is \"{}\", and the network has no fully connected layers to divide", scheme->name),
        "name others in parallel.output_layers and parallel.input_layers");
  }
  PURINE_CHECK(scheme->divide != nullptr);
  try {
    return scheme->divide(graph, mesh, keys, partition_options());
  } catch (const Error& error) {
    // What a pipeline cannot do with a network is known only now, and no mistake of purine's.
    if (error.component() != "pipeline") throw;
    const std::string at = error.path().empty() ? "" : error.path() + ": ";
    throw loaded.error("parallel.scheme",
                       fmt::format("is \"{}\", and {}{}", scheme->name, at, error.message()), error.hint());
  }
}

ParallelSetup parallel_setup(const LoadedJob& loaded, int ranks) {
  std::vector<Location> devices = find_devices(loaded, ranks);
  const Scheme& scheme = choose_scheme(loaded, devices.size());
  check_keys(loaded, scheme);
  check_gradient_format(loaded);
  parallel::Mesh mesh = make_mesh(loaded, scheme, std::move(devices));
  set_shares(loaded, mesh);
  check_stage_shares(loaded, scheme, mesh);
  return {&scheme, std::move(mesh), loaded};
}

LoadedJob with_devices(LoadedJob loaded, const std::string& devices, const std::string& origin, int ranks) {
  loaded.job.parallel.devices = devices;
  loaded.origins["parallel.devices"] = origin;
  if (find_devices(loaded, ranks).size() == 1) {
    loaded.job.parallel = {.devices = devices};
  }
  parallel_setup(loaded, ranks);
  return loaded;
}

}  // namespace purine::train
