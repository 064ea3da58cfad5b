// An accelerator played by threads of this process: queues, events and memory of its own, and links of a set
// speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "purine/backend/emu/memory_map.h"
#include "purine/runtime/device.h"

namespace purine::emu {

struct EmulatedOptions {
  std::size_t memory = std::size_t{4} << 30U;  ///< bytes; taken from the host only as far as it is used
  double copy_bytes_per_second = 12e9;         ///< of each queue's copies
  double copy_latency_seconds = 10e-6;         ///< of each copy
};

/// What a queue's work is handed: kernels see the device's memory this many bytes behind where it is named.
struct NativeQueue {
  std::ptrdiff_t shift = 0;
};

/// Follows the contract of a real accelerator, so that a program for many of them can be written, tested and
/// traced on a machine without one. Each queue is a thread that works in order; failures are sticky, as
/// CUDA's are.
///
/// Its memory is mapped twice: at the addresses that allocate() gives, where no access is allowed, and again
/// where the queues' kernels find it (NativeQueue::shift). Host code that reads a device's tensor by mistake
/// so ends with SIGSEGV instead of working by luck.
class EmulatedDevice final : public Device {
 public:
  /// Devices that share a memory map can copy from and to one another.
  EmulatedDevice(Location location, std::shared_ptr<MemoryMap> memory_map, EmulatedOptions options = {});
  EmulatedDevice(const EmulatedDevice&) = delete;
  EmulatedDevice& operator=(const EmulatedDevice&) = delete;
  ~EmulatedDevice() override;

  Location location() const override { return location_; }
  std::unique_ptr<Queue> make_queue() override;
  std::unique_ptr<Event> make_event() override;
  std::byte* allocate(std::size_t bytes) override;
  void deallocate(std::byte* memory) override;
  std::size_t capacity() const override { return options_.memory; }

  const EmulatedOptions& options() const { return options_; }
  const MemoryMap& memory_map() const { return *memory_map_; }
  std::ptrdiff_t shift() const { return real_ - named_; }

 private:
  Location location_;
  std::shared_ptr<MemoryMap> memory_map_;
  EmulatedOptions options_;
  std::byte* named_ = nullptr;
  std::byte* real_ = nullptr;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;  // offset to bytes
  std::map<std::size_t, std::size_t> used_;
};

}  // namespace purine::emu
