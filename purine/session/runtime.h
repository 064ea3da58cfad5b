// This process's devices, the kernels they have, and the other processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "purine/backend/emu/emulated_device.h"
#include "purine/core/location.h"
#include "purine/program/kernel.h"
#include "purine/runtime/device.h"
#include "purine/runtime/endpoint.h"
#include "purine/trace/transfer_meter.h"

namespace purine {

struct RuntimeOptions {
  /// Threads that run CPU operators, shared evenly by the CPU devices; 0: one for each core that the process
  /// may use, and at least one a device.
  int workers = 0;
  /// This process's devices; those of other ranks are left out, so that a mesh's locations can be given as
  /// they are. `cpu:0` is always among them: the host reads, writes and brings data in there.
  std::vector<Location> devices = {};
  /// How the algorithms of convolutions are chosen.
  enum class Convolutions : std::uint8_t {
    /// By a rule, of their shapes: the same on every machine.
    fastest,
    /// By measuring each shape once; `convolution_choices` keeps what was found. Where two algorithms are
    /// about
    /// equally fast, another machine or another measurement may take the other one, which rounds otherwise.
    measured,
    /// As they are defined, also where another algorithm (Winograd's) is faster, whose results are rounded a
    /// few
    /// times more.
    direct,
  };
  Convolutions convolutions = Convolutions::fastest;
  /// The file of measured choices; by default as ConvolutionChoices::default_file.
  std::optional<std::filesystem::path> convolution_choices = {};
  /// What emulated devices are like.
  emu::EmulatedOptions emulated = {};
  /// The other processes of the run, if there are any. It must outlive the runtime.
  Endpoint* endpoint = nullptr;
  /// What this process sends to others in a second, for what goes first; see net::measure_links. By default
  /// 10 Gbit/s.
  double network_bytes_per_second = 1.25e9;
};

class ConvolutionChoices;

/// What programs run on: this process's devices and their kernels, and the way to the other processes. Made
/// once and passed on.
class Runtime {
 public:
  /// Throws Error for a device that this build or machine doesn't have, or that is given twice.
  explicit Runtime(RuntimeOptions options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  /// Workers of all CPU devices.
  int workers() const;
  /// Workers of one.
  int workers_of(Location cpu) const;
  /// Cores that the process may use (its affinity mask).
  static int available_cores();
  /// Which of the run's processes this is, and how many there are: 0 of 1 without an endpoint.
  std::int32_t rank() const { return endpoint_ != nullptr ? endpoint_->rank() : 0; }
  std::int32_t ranks() const { return endpoint_ != nullptr ? endpoint_->size() : 1; }
  /// Null if this is the only process.
  Endpoint* endpoint() const { return endpoint_; }
  /// Measures what this rank exchanges with the others, and how much of it operators hide that run meanwhile,
  /// in all sessions. Null if this is the only process.
  trace::TransferMeter* transfer_meter() const { return transfer_meter_.get(); }
  double network_bytes_per_second() const { return network_bytes_per_second_; }
  /// Numbers the runs of all sessions, which begin in the same order at all ranks.
  std::int64_t next_run() { return runs_++; }
  /// All devices, CPUs first.
  const std::vector<Location>& devices() const { return devices_; }
  bool has(Location location) const;
  /// A device that isn't a CPU.
  Device& device(Location location);
  const KernelRegistry& cpu_kernels() const { return cpu_kernels_; }
  /// To add kernels of one's own operators, before a session is made.
  KernelRegistry& cpu_kernels() { return cpu_kernels_; }
  /// The kernels of each kind of device: emulated ones run the CPU's.
  std::map<DeviceKind, const KernelRegistry*> kernels() const;
  /// Threads that bind kernels: one for each core where convolutions are measured meanwhile, which takes
  /// long. Kernels of one's own must then allow to be bound by several.
  int binding_threads() const { return convolution_choices_ != nullptr ? available_cores() : 1; }
  /// Keeps what was measured while kernels were bound; a session does when it is made.
  void save_measurements();

 private:
  Endpoint* endpoint_;
  double network_bytes_per_second_;
  std::shared_ptr<trace::TransferMeter> transfer_meter_;
  std::int64_t runs_ = 0;
  std::vector<Location> devices_;
  std::map<Location, int> workers_;
  std::map<Location, std::unique_ptr<Device>> accelerators_;
  std::shared_ptr<ConvolutionChoices> convolution_choices_;  // null unless they are measured
  KernelRegistry cpu_kernels_;
};

/// Reads a list of devices: `cpu:0,cpu:1`, `emu:0-7`, `cpu:0-1,emu:3`. Throws Error for anything else, and
/// for a device given twice.
std::vector<Location> parse_devices(std::string_view text);

}  // namespace purine
