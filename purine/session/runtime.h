// This process's devices and the kernels they have.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "purine/backend/emu/emulated_device.h"
#include "purine/core/location.h"
#include "purine/program/kernel.h"
#include "purine/runtime/device.h"

namespace purine {

struct RuntimeOptions {
  /// Threads that run CPU operators, shared evenly by the CPU devices; 0: one for each core that the process
  /// may use, and at least one a device.
  int workers = 0;
  /// This process's devices. `cpu:0` is always among them: the host reads, writes and brings data in there.
  std::vector<Location> devices = {};
  /// What emulated devices are like.
  emu::EmulatedOptions emulated = {};
};

/// What programs run on: this process's devices and their kernels. Made once and passed on.
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

 private:
  std::vector<Location> devices_;
  std::map<Location, int> workers_;
  std::map<Location, std::unique_ptr<Device>> accelerators_;
  KernelRegistry cpu_kernels_;
};

/// Reads a list of devices: `cpu:0,cpu:1`, `emu:0-7`, `cpu:0-1,emu:3`. Throws Error for anything else, and
/// for a device given twice.
std::vector<Location> parse_devices(std::string_view text);

}  // namespace purine
