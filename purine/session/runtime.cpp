#include "purine/session/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "purine/backend/cpu/convolution.h"
#include "purine/backend/cpu/kernels.h"
#include "purine/core/error.h"
#include "purine/data/source.h"
#include "purine/runtime/cpu_workers.h"
#include "purine/session/convolution_choices.h"

namespace purine {
namespace {

constexpr int most_workers = 1024;
constexpr std::int32_t max_range = 4096;  // of a list of devices: more is a slip of the finger
constexpr std::string_view device_hint =
    "write KIND:INDEX or KIND:FIRST-LAST, separated by commas: cpu:0,cpu:1 or emu:0-7";

}  // namespace

Runtime::Runtime(RuntimeOptions options)
    : endpoint_(options.endpoint), network_bytes_per_second_(options.network_bytes_per_second) {
  if (options.workers < 0 || options.workers > most_workers) {
    throw Error("runtime", std::to_string(options.workers) + " workers can't be",
                "give 1 to " + std::to_string(most_workers) + ", or 0 for one a core");
  }
  std::set<Location> devices(options.devices.begin(), options.devices.end());
  if (devices.size() != options.devices.size()) throw Error("runtime", "a device is given twice");
  std::erase_if(devices, [&](const Location& device) { return device.rank != rank(); });
  devices.insert(Location{rank(), DeviceKind::cpu, 0});
  devices_.assign(devices.begin(), devices.end());  // CPUs first, since their kind is the first
  std::vector<Location> cpus;
  const auto memory_map = std::make_shared<emu::MemoryMap>();
  for (const Location& location : devices_) {
    if (location.kind == DeviceKind::cpu) {
      cpus.push_back(location);
    } else if (location.kind == DeviceKind::emu) {
      accelerators_.emplace(location,
                            std::make_unique<emu::EmulatedDevice>(location, memory_map, options.emulated));
    } else {
      throw Error("runtime", "there is no device " + location.text(), "this build has cpu and emu devices");
    }
  }
  const int count = static_cast<int>(cpus.size());
  const int workers = std::max(count, options.workers > 0 ? options.workers : available_cores());
  for (int i = 0; i < count; ++i) {
    workers_[cpus[static_cast<std::size_t>(i)]] = workers * (i + 1) / count - workers * i / count;
  }
  cpu::register_cpu_kernels(cpu_kernels_);
  if (options.convolutions == RuntimeOptions::Convolutions::direct) {
    cpu::set_convolutions(cpu_kernels_, [](auto, const auto&) { return cpu::ConvolutionAlgorithm::direct; });
  } else if (options.convolutions == RuntimeOptions::Convolutions::measured) {
    convolution_choices_ = std::make_shared<ConvolutionChoices>(
        options.convolution_choices ? *options.convolution_choices : ConvolutionChoices::default_file());
    cpu::set_convolutions(cpu_kernels_, [choices = convolution_choices_](auto pass, const auto& problem) {
      return choices->choose(pass, problem);
    });
  }
  data::register_kernels(cpu_kernels_);
  if (endpoint_ != nullptr) {
    transfer_meter_ = std::make_shared<trace::TransferMeter>();
    endpoint_->observe(transfer_meter_);
  }
}

Runtime::~Runtime() {
  if (endpoint_ != nullptr) endpoint_->observe(nullptr);
}

void Runtime::save_measurements() {
  if (convolution_choices_ != nullptr) convolution_choices_->save();
}

int Runtime::available_cores() {
  return std::max(1, static_cast<int>(CpuWorkers::available_cores().size()));
}

int Runtime::workers() const {
  int sum = 0;
  for (const auto& [location, count] : workers_) sum += count;
  return sum;
}

int Runtime::workers_of(Location cpu) const {
  const auto found = workers_.find(cpu);
  PURINE_CHECK(found != workers_.end());
  return found->second;
}

bool Runtime::has(Location location) const {
  return std::find(devices_.begin(), devices_.end(), location) != devices_.end();
}

Device& Runtime::device(Location location) {
  const auto found = accelerators_.find(location);
  PURINE_CHECK(found != accelerators_.end());
  return *found->second;
}

std::map<DeviceKind, const KernelRegistry*> Runtime::kernels() const {
  return {{DeviceKind::cpu, &cpu_kernels_}, {DeviceKind::emu, &cpu_kernels_}};
}

std::vector<Location> parse_devices(std::string_view text) {
  std::vector<Location> devices;
  std::string_view rest = text;
  while (true) {
    const auto comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    std::int32_t last = -1;
    if (const auto dash = item.find('-'); dash != std::string_view::npos) {
      const std::string_view number = item.substr(dash + 1);
      const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), last);
      if (code != std::errc() || end != number.data() + number.size() || last < 0) {
        throw Error("devices", "'" + std::string(text) + "' is no list of devices", device_hint);
      }
      item = item.substr(0, dash);
    }
    Location location;
    try {
      location = Location::parse(item);
    } catch (const Error&) {
      throw Error("devices", "'" + std::string(text) + "' is no list of devices", device_hint);
    }
    if (last < 0) last = location.index;
    if (last < location.index) {
      throw Error("devices", "'" + std::string(text) + "' has a range that doesn't count up", device_hint);
    }
    if (last - location.index >= max_range) {
      throw Error("devices", fmt::format("'{}' has a range of more than {} devices", text, max_range));
    }
    for (; location.index <= last; ++location.index) {
      if (std::find(devices.begin(), devices.end(), location) != devices.end()) {
        throw Error("devices", location.text() + " is given twice in '" + std::string(text) + "'");
      }
      devices.push_back(location);
    }
    if (comma == std::string_view::npos) return devices;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace purine
