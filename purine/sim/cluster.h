// Machines that don't have to be there: hosts, their devices, and the network between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "purine/core/dtype.h"
#include "purine/core/location.h"
#include "purine/graph/contract.h"
#include "purine/trace/message_times.h"

namespace purine::sim {

/// How fast one core, or one accelerator, computes.
struct Processor {
  double f32_operations = 0;  ///< floating-point operations a second, at best
  double f64_operations = 0;  ///< 0: half of those in f32
  double reached = 1;         ///< the share of them that kernels reach
  double memory_bytes_per_second = 0;
  double start_seconds = 0;  ///< that each operator takes besides

  /// The roofline: what operations or bytes take, whichever is more. On a core `start_seconds` come on top;
  /// an accelerator's launches pass meanwhile.
  double seconds(const Cost& cost, DType dtype) const;
};

struct Cpu {
  std::string name;
  Processor core;
  int cores = 1;
  double all_busy_speed = 1;  ///< of each core when all of them work, against one that works alone
  double turn_seconds = 0;   ///< between turns at which threads that serve get a core that works; 0: any time
  double slice_seconds = 0;  ///< for which a worker that takes a free core keeps it at turns
  std::size_t memory_bytes = 0;
};

struct Gpu {
  std::string name;
  Processor processor;
  std::size_t memory_bytes = 0;
  double in_bytes_per_second = 0;    ///< from the host's memory
  double out_bytes_per_second = 0;   ///< to it
  double peer_bytes_per_second = 0;  ///< from and to other devices of the host, in each direction
  double copy_seconds = 0;           ///< until a copy's first byte arrives
};

struct Card {
  std::string name;
  double bytes_per_second = 0;  ///< in each direction
  double latency = 0;
  double message_seconds = 0;
  double burst_bytes = 0;  ///< that pass at once after a rest
  double core_seconds_per_byte = 0;
  double core_seconds_per_message = 0;
  double buffer_bytes = 0;  ///< that the system takes of what goes to a host; 0: sent is what has arrived
};

struct Switch {
  double bytes_per_second = 0;  ///< of all hosts together; 0: as much as their cards give
  double latency = 0;
};

struct Host {
  Cpu cpu;
  std::vector<Gpu> gpus;
  Card card;
};

/// One process, a rank, runs on each host and has all its devices: `sim:0`, … are its accelerators, `cpu:0`
/// its cores.
struct Cluster {
  std::string name;
  std::vector<Host> hosts;
  Switch network_switch;

  /// All accelerators, or, where no host has one, `cpu:0` of every host.
  std::vector<Location> devices() const;
  bool has(Location location) const;
};

/// How fast the hosts' messages go, to explain a trace. A message costs what occupies its card or, where that
/// is more, the core that serves it.
trace::NetworkSpeed network_speed(const Cluster& cluster);

/// Reads a cluster file. Numbers are in the units that their keys name. `docs/simulator.md` lists the keys.
/// Throws Error("cluster", …) at file and line for the first mistake: unknown sections and keys (with the
/// nearest one that exists), wrong types and ranges, what is missing, and names that nothing has; or at a
/// file that cannot be read.
Cluster parse_cluster(std::string_view text, std::string_view name);
Cluster read_cluster(const std::filesystem::path& path);

}  // namespace purine::sim
