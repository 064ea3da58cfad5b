#include "purine/sim/cluster.h"

#include <algorithm>

#include "purine/net/transport/pace.h"

namespace purine::sim {

double Processor::seconds(const Cost& cost, DType dtype) const {
  const double f64 = f64_operations > 0 ? f64_operations : f32_operations / 2;
  const double operations = (dtype == DType::f64 ? f64 : f32_operations) * reached;
  return std::max(cost.operations / operations, cost.bytes / memory_bytes_per_second);
}

std::vector<Location> Cluster::devices() const {
  std::vector<Location> found;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (std::size_t gpu = 0; gpu < hosts[host].gpus.size(); ++gpu) {
      found.push_back({static_cast<std::int32_t>(host), DeviceKind::sim, static_cast<std::int32_t>(gpu)});
    }
  }
  if (!found.empty()) return found;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    found.push_back({static_cast<std::int32_t>(host), DeviceKind::cpu, 0});
  }
  return found;
}

trace::NetworkSpeed network_speed(const Cluster& cluster) {
  trace::NetworkSpeed speed;
  for (const Host& host : cluster.hosts) {
    speed.links.push_back({host.card.bytes_per_second,
                           std::max(host.card.message_seconds, host.card.core_seconds_per_message),
                           host.card.latency + cluster.network_switch.latency});
  }
  speed.switch_bytes_per_second = cluster.network_switch.bytes_per_second;
  speed.chunk_bytes = static_cast<std::int64_t>(net::pace_of(speed.slowest_link()).chunk_bytes);
  return speed;
}

bool Cluster::has(Location location) const {
  if (location.rank < 0 || static_cast<std::size_t>(location.rank) >= hosts.size()) return false;
  const Host& host = hosts[static_cast<std::size_t>(location.rank)];
  // Any number of CPU devices share a host's cores.
  if (location.kind == DeviceKind::cpu) return location.index < host.cpu.cores;
  return location.kind == DeviceKind::sim && static_cast<std::size_t>(location.index) < host.gpus.size();
}

}  // namespace purine::sim
