// The memory that a session's programs run in, at each of their locations.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "purine/program/program.h"
#include "purine/session/runtime.h"
#include "purine/session/variables.h"

namespace purine {

/// For each location an arena, for accelerators also scratch memory and the storage of the variables that lie
/// there. Between runs the host's `Variables` hold the values of all variables; during a run those of
/// accelerators are worked on there, and are brought back at its end.
class DeviceMemory {
 public:
  DeviceMemory(Runtime& runtime, Graph& graph, const Variables& variables);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  /// Makes the arenas at least as large as a program needs them; before allocate().
  void reserve(const Program& program);
  /// Throws Error where a device has too little memory.
  void allocate();

  std::byte* arena(Location location) const;
  /// Null for CPUs, whose workers have their own.
  std::byte* scratch(Location location) const;
  /// One for each of the graph's variables, in their order; null for those of other ranks.
  const std::vector<std::byte*>& variables() const { return variables_; }

  void upload_variables();
  void download_variables();

 private:
  struct Place {
    std::size_t arena_bytes = 0;
    std::size_t scratch_bytes = 0;
    AlignedBuffer host_arena;
    std::byte* arena = nullptr;
    std::byte* scratch = nullptr;
    std::unique_ptr<Queue> queue;
  };
  struct RemoteVariable {
    Location location;
    std::byte* device = nullptr;
    std::byte* host = nullptr;
    std::size_t bytes = 0;
  };

  template <typename Function>
  void for_each_remote(const Function& copy);

  Runtime& runtime_;
  std::map<Location, Place> places_;
  std::vector<std::byte*> variables_;
  std::vector<RemoteVariable> remote_;
};

}  // namespace purine
