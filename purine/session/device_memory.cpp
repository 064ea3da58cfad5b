#include "purine/session/device_memory.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>

#include "purine/core/error.h"

namespace purine {
namespace {

/// Waits on the calling thread until a queue's work is done.
class Completion final : public CompletionListener {
 public:
  void completed(std::uint64_t, std::exception_ptr error) override {
    // Notifies under the lock: the waiting thread destroys this as soon as it can take it.
    const std::lock_guard lock(mutex_);
    done_ = true;
    error_ = std::move(error);
    changed_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::exception_ptr error_;
};

}  // namespace

DeviceMemory::DeviceMemory(Runtime& runtime, Graph& graph, const Variables& variables) : runtime_(runtime) {
  for (const Variable variable : graph.variables()) {
    if (variable.location().rank != runtime.rank()) {
      variables_.push_back(nullptr);
      continue;
    }
    const Variables::Entry& entry = variables.at(variable.path());
    variables_.push_back(entry.buffer.data());
    if (variable.location().kind == DeviceKind::cpu) continue;
    remote_.push_back({variable.location(), nullptr, entry.buffer.data(), entry.info.bytes()});
    places_[variable.location()];
  }
}

DeviceMemory::~DeviceMemory() {
  for (const auto& [location, place] : places_) {
    if (location.kind == DeviceKind::cpu) continue;
    runtime_.device(location).deallocate(place.arena);
    runtime_.device(location).deallocate(place.scratch);
  }
  for (const RemoteVariable& variable : remote_)
    runtime_.device(variable.location).deallocate(variable.device);
}

void DeviceMemory::reserve(const Program& program) {
  for (std::size_t i = 0; i < program.places().size(); ++i) {
    Place& place = places_[program.places()[i]];
    const MemoryUse& use = program.memory()[i];
    place.arena_bytes = std::max(place.arena_bytes, use.arena + use.slots);
    place.scratch_bytes = std::max(place.scratch_bytes, use.scratch_per_worker);
  }
}

void DeviceMemory::allocate() {
  for (auto& [location, place] : places_) {
    if (location.kind == DeviceKind::cpu) {
      place.host_arena = AlignedBuffer(place.arena_bytes);
      place.arena = place.host_arena.data();
      continue;
    }
    Device& device = runtime_.device(location);
    place.queue = device.make_queue();
    place.arena = device.allocate(place.arena_bytes);
    place.scratch = device.allocate(place.scratch_bytes);
  }
  auto remote = remote_.begin();
  for (std::byte*& pointer : variables_) {
    if (remote == remote_.end() || remote->host != pointer) continue;
    remote->device = runtime_.device(remote->location).allocate(remote->bytes);
    pointer = remote->device;
    ++remote;
  }
}

std::byte* DeviceMemory::arena(Location location) const {
  return places_.at(location).arena;
}

std::byte* DeviceMemory::scratch(Location location) const {
  return places_.at(location).scratch;
}

template <typename Function>
void DeviceMemory::for_each_remote(const Function& copy) {
  if (remote_.empty()) return;
  for (const RemoteVariable& variable : remote_) copy(*places_.at(variable.location).queue, variable);
  for (auto& [location, place] : places_) {
    if (place.queue == nullptr) continue;
    Completion completion;
    place.queue->notify(completion, 0);
    completion.wait();
  }
}

void DeviceMemory::upload_variables() {
  for_each_remote([](Queue& queue, const RemoteVariable& variable) {
    queue.copy(variable.device, variable.host, variable.bytes);
  });
}

void DeviceMemory::download_variables() {
  for_each_remote([](Queue& queue, const RemoteVariable& variable) {
    queue.copy(variable.host, variable.device, variable.bytes);
  });
}

}  // namespace purine
