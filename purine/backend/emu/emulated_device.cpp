#include "purine/backend/emu/emulated_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "purine/backend/emu/emulated_queue.h"
#include "purine/core/error.h"

namespace purine::emu {
namespace {

constexpr std::size_t alignment = 256;
constexpr std::size_t page = 4096;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::byte* map(std::size_t bytes, int protection, int file) {
  void* const address = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (address == MAP_FAILED) {
    throw Error("emu", "mapping " + std::to_string(bytes) +
                           " bytes of device memory failed: " + std::generic_category().message(errno));
  }
  return static_cast<std::byte*>(address);
}

}  // namespace

EmulatedDevice::EmulatedDevice(Location location, std::shared_ptr<MemoryMap> memory_map,
                               EmulatedOptions options)
    : location_(location), memory_map_(std::move(memory_map)), options_(options) {
  if (options_.memory == 0 || !(options_.copy_bytes_per_second > 0) ||
      !(options_.copy_latency_seconds >= 0)) {
    throw Error("emu", "memory and copy bandwidth must be above 0, copy latency at least 0")
        .on(location.text());
  }
  options_.memory = round_up(options_.memory, page);
  const int file = memfd_create("purine-emulated-device", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(options_.memory)) != 0) {
    const std::string reason = std::generic_category().message(errno);
    if (file >= 0) close(file);
    throw Error("emu",
                "making " + std::to_string(options_.memory) + " bytes of device memory failed: " + reason)
        .on(location.text());
  }
  named_ = map(options_.memory, PROT_NONE, file);
  real_ = map(options_.memory, PROT_READ | PROT_WRITE, file);
  close(file);
  free_.emplace(0, options_.memory);
  memory_map_->add(named_, options_.memory, shift());
}

EmulatedDevice::~EmulatedDevice() {
  memory_map_->remove(named_);
  munmap(named_, options_.memory);
  munmap(real_, options_.memory);
}

std::unique_ptr<Queue> EmulatedDevice::make_queue() {
  return std::make_unique<EmulatedQueue>(*this);
}

std::unique_ptr<Event> EmulatedDevice::make_event() {
  return std::make_unique<EmulatedEvent>();
}

std::byte* EmulatedDevice::allocate(std::size_t bytes) {
  const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), alignment);
  const std::lock_guard lock(mutex_);
  for (auto segment = free_.begin(); segment != free_.end(); ++segment) {
    if (segment->second < rounded) continue;
    const std::size_t offset = segment->first;
    const std::size_t left = segment->second - rounded;
    free_.erase(segment);
    if (left > 0) free_.emplace(offset + rounded, left);
    used_.emplace(offset, rounded);
    return named_ + offset;
  }
  std::size_t available = 0;
  for (const auto& [offset, size] : free_) available += size;
  throw Error("emu",
              std::to_string(bytes) + " bytes can't be had, " + std::to_string(available) + " of " +
                  std::to_string(options_.memory) + " are free",
              "use a smaller batch or model, or give the device more memory in RuntimeOptions::emulated, or "
              "emulated.memory_gib")
      .on(location_.text());
}

void EmulatedDevice::deallocate(std::byte* memory) {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto used = used_.find(static_cast<std::size_t>(memory - named_));
  PURINE_CHECK(used != used_.end());
  auto [offset, bytes] = *used;
  used_.erase(used);
  if (const auto next = free_.find(offset + bytes); next != free_.end()) {
    bytes += next->second;
    free_.erase(next);
  }
  auto previous = free_.lower_bound(offset);
  if (previous != free_.begin() && (--previous)->first + previous->second == offset) {
    previous->second += bytes;
    return;
  }
  free_.emplace(offset, bytes);
}

}  // namespace purine::emu
