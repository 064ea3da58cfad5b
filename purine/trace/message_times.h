// What holds messages between ranks up: the rate of their links, each message's own cost, or latency.
#pragma once

#include <cstdint>
#include <vector>

#include "purine/trace/timeline.h"

namespace purine::trace {

/// A rank's link to all others.
struct LinkSpeed {
  double bytes_per_second = 0;  ///< in each direction
  double message_seconds = 0;   ///< that each chunk of a message occupies the way out besides its bytes
  double latency = 0;           ///< seconds, from a byte's departure to its arrival
};

/// Nothing is known of a network that has no links.
struct NetworkSpeed {
  std::vector<LinkSpeed> links;        ///< by rank
  double switch_bytes_per_second = 0;  ///< of all ranks together; 0: as much as their links give
  std::int64_t chunk_bytes = std::int64_t{256} << 10;  ///< of a chunk, which has the cost of a message

  /// Bytes per second of the slowest link, of those there are.
  double slowest_link() const;
  /// The chunks that a message of so many bytes goes in.
  std::int64_t chunks_of(std::int64_t bytes) const { return (bytes + chunk_bytes - 1) / chunk_bytes; }
};

/// What a stretch of a message's time consists of. Nanoseconds.
struct MessageTime {
  std::int64_t rate = 0;      ///< bytes occupied the link: this message's, or others' before it
  std::int64_t messages = 0;  ///< the cost of messages did, which they have besides their bytes
  std::int64_t latency = 0;   ///< its last byte, or the word that there is memory for it, was on its way
  std::int64_t waiting = 0;   ///< neither: for a core, or until the transport looked
};

/// Finds when links were occupied. A link does all that its messages need between the times when both of
/// their ends were ready and when they came; when in between isn't known, so that each piece of work is taken
/// for as late as it can have been. Example: a link of 1 MB/ms without latency and two messages of 10 MB that
/// are ready at 0 and come at 20 and at 30 ms occupied it from 10 to 30 ms; so of the second message's time
/// 20 ms are due to the rate, half of that to the message before it, and it waited for 10 ms before.
class MessageTimes {
 public:
  /// The timeline must outlive it.
  MessageTimes(const Timeline& timeline, const NetworkSpeed& network);

  /// False if nothing is known of the network.
  bool are_known() const { return !lanes_.empty(); }
  /// What [begin, end) consists of, of the time of a message, which one of its ends stands for.
  MessageTime of(EventId id, std::int64_t begin, std::int64_t end) const;

 private:
  // What a message needs of a direction of a link, in [begin, end) of the times when bytes depart.
  struct Work {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t left = 0;
    double rate_share = 1;  // of the work that is due to bytes
  };
  struct Occupied {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    double rate_share = 1;
  };
  using Lane = std::vector<Occupied>;  // in order of time, without overlaps

  struct Ends {
    std::size_t sender = 0;  // ranks, as links are numbered
    std::size_t receiver = 0;
  };
  Ends ends_of(EventId id) const;
  std::int64_t latency_of(const Ends& ends) const;
  static Lane lay_out(std::vector<Work> work);

  const Timeline& timeline_;
  const NetworkSpeed network_;
  std::vector<Lane> lanes_;  // out of and into each rank in turn, and at last the switch
};

}  // namespace purine::trace
