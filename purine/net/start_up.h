// What the ranks of a run are, and what lies between them.
#pragma once

#include <string>
#include <vector>

#include "purine/runtime/endpoint.h"

namespace purine::net {

/// A rank among those of its host, who share its cores and devices.
struct LocalRank {
  int rank = 0;  ///< from 0
  int size = 1;
};
LocalRank local_rank(const Endpoint& endpoint);

/// What messages to the next rank take.
struct Link {
  double bytes_per_second = 0;  ///< while all ranks send at the same time
  double latency = 0;           ///< of a small message, in seconds: half a round trip, credits not counted
};

/// Measures the links from each rank to the next, by rank; the last one's is to rank 0. Takes about 0.3 s, or
/// two messages of 1 MiB where that is longer, and fits the endpoints to the slowest (Endpoint::fit_to). A
/// collective call of at least two ranks.
std::vector<Link> measure_links(Endpoint& endpoint);

/// An address of this host.
struct Interface {
  std::string name;     ///< `eth0`
  std::string address;  ///< in dots
  int prefix = 0;       ///< bits that the addresses of its network share
};

/// The addresses (IPv4) of this host's interfaces that are up, without its own loop.
std::vector<Interface> interfaces();
/// The one by which `own` reaches `other`: the first in a network of both. The first of all if there is none,
/// and an unnamed one if there are no addresses.
Interface interface_to(const std::vector<Interface>& own, const std::vector<Interface>& other);

/// The cores that this rank has for itself: those that the process may use, divided among the ranks of the
/// host that may use the same. A collective call.
int own_cores(Endpoint& endpoint);

/// What a user may want to know of a rank.
struct RankDescription {
  std::string host;
  Interface interface;  ///< by which it reaches the next rank on another host; unnamed if it has none
  std::string devices;
  int cores = 0;
  Link link;  ///< to the next rank
};
/// All ranks. A collective call; `devices` and `cores` are this rank's.
std::vector<RankDescription> learn_ranks(Endpoint& endpoint, const std::string& devices, int cores);
/// A table of them, a line each below its head.
std::string ranks_table(const std::vector<RankDescription>& ranks);
/// The table of what learn_ranks says, the same at all ranks.
std::string describe_ranks(Endpoint& endpoint, const std::string& devices, int cores);

}  // namespace purine::net
