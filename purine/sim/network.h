// Network cards and the switch between hosts, under the transport that real runs have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purine/net/transport/messenger.h"
#include "purine/sim/cores.h"
#include "purine/sim/overlap_meter.h"
#include "purine/sim/token_bucket.h"
#include "purine/sim/virtual_time.h"

namespace purine::sim {

/// A host's way to the others.
struct CardOptions {
  double bytes_per_second = 1.25e9;  ///< in each direction
  double latency = 0;                ///< seconds from a byte's departure here to its arrival elsewhere
  double message_seconds = 0;        ///< that each message occupies the card besides its bytes
  /// What may pass at once, in each direction, after a rest in which as much would have passed.
  double burst_bytes = 0;
  /// What the transport's thread, which shares the host's cores with the workers, needs to send or to receive
  /// a byte, and a message besides.
  double core_seconds_per_byte = 0;
  double core_seconds_per_message = 0;
  /// What the system takes of chunks to each host before they leave: a chunk counts as sent once it is taken.
  /// 0: when it has arrived.
  double buffer_bytes = 0;
};

/// What all messages pass.
struct SwitchOptions {
  double bytes_per_second = 0;  ///< of all hosts together; 0: as much as their cards give
  double latency = 0;
};

/// Hosts, each with a card, on one switch. The cards send what they are given: chunks to several hosts in
/// turn, one from each; words, which are short, without waiting. A chunk begins to arrive when its first
/// bytes have come and those that came before are taken in; so it takes the time of the slower card, and two
/// senders share what their receiver takes. The transport's
/// thread works on one message at a time, before it goes out or after it has come in; it serves the workers
/// (`Cores::serve`).
///
/// A host's transport looks for what has arrived in pauses, as that of a real run does (`net::pause_after`).
class Network final : public TimedAction, private Cores::Listener {
 public:
  /// The time must outlive it.
  Network(VirtualTime& time, const std::vector<CardOptions>& cards, const SwitchOptions& all);
  ~Network() override;

  /// The messenger of a host, for its transport: whoever listens is told of what has happened, in place of
  /// `poll`.
  net::Messenger& messenger(int host);
  /// `meter` is told of all that moves out of a host or to it; `cores` are the host's.
  void listen(int host, net::MessengerListener& listener, OverlapMeter& meter, Cores& cores);
  /// What went out of a host, or came in. To be told of the host's operators by whoever runs them.
  OverlapMeter& outgoing(int host);
  OverlapMeter& incoming(int host);

  void act(std::uint64_t tag) override;

 private:
  class HostMessenger;
  struct Delivery {
    enum class Stage : std::uint8_t { leaving, on_its_way, arrived };
    enum class Kind : std::uint8_t { words, chunk, taken };  // the last: the system tells that it took one
    Stage stage = Stage::leaving;
    Kind kind = Kind::words;
    int from = 0;
    int to = 0;
    std::string words = {};
    std::uint32_t slot = 0;
    std::size_t bytes = 0;
    std::uint64_t ticket = 0;  // the sender's
    std::uint32_t next_free = 0;
  };
  // Of the system at a host, for chunks to another one.
  struct Buffer {
    std::size_t bytes = 0;
    std::deque<std::pair<std::size_t, std::uint64_t>> outside =
        {};  // bytes and tickets of what found no room
  };
  struct Card {
    Card(const CardOptions& card_options, std::unique_ptr<HostMessenger> host_messenger, const Clock& clock);
    ~Card();

    CardOptions options;
    const std::unique_ptr<HostMessenger> messenger;
    net::MessengerListener* listener = nullptr;
    OverlapMeter* both = nullptr;
    Cores* cores = nullptr;
    std::deque<std::uint32_t> thread;  // deliveries that the transport's thread works on, in turn
    bool has_thread = false;           // if its work takes time or waits for a core
    TokenBucket outgoing_bucket;
    TokenBucket incoming_bucket;
    // Chunks to be sent, and the hosts that have some, whose turn comes in this order.
    std::map<int, std::deque<std::uint32_t>> waiting;
    std::deque<int> turns;
    bool sending = false;
    std::pair<int, std::size_t> leaving = {};  // to whom, and how many bytes
    std::map<int, Buffer> buffers;             // by host, if the card has them
    std::int64_t last_event = 0;
    std::map<std::pair<int, std::uint32_t>, std::deque<std::uint64_t>> posted;  // receives' tickets
    OverlapMeter outgoing;
    OverlapMeter incoming;
  };

  Card& card(int host) { return *cards_[static_cast<std::size_t>(host)]; }
  void send_words(int from, int to, std::string words);
  void send_chunk(int from, int to, std::uint32_t slot, std::size_t bytes, std::uint64_t ticket);
  void work_on(int host, std::uint32_t index);
  void begin_work(int host, bool goes_on);
  void work_done(std::uint64_t host) override;
  void go_on(std::uint32_t index);
  void leave(std::uint32_t index);
  void send_next_chunk(int from);
  void take_chunks(int from, int to, bool thread_is_at_work);
  void deliver(std::uint32_t index);
  std::uint32_t add_delivery(Delivery delivery);

  VirtualTime& time_;
  const SwitchOptions switch_;
  std::vector<std::unique_ptr<Card>> cards_;
  std::vector<Delivery> deliveries_;
  std::uint32_t first_free_ = 0xffffffffU;
  std::int64_t switch_free_at_ = 0;
};

/// The first look at or after `time` of a transport to which something has last happened at `last_event`.
std::int64_t next_look(std::int64_t last_event, std::int64_t time);

}  // namespace purine::sim
