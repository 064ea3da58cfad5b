// Tensors on their way between this rank and others: credits, chunks, and which goes first.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "purine/net/transport/messenger.h"
#include "purine/net/transport/words.h"
#include "purine/runtime/endpoint.h"

namespace purine::net {

struct TransferOptions {
  /// A larger message is sent in chunks of this size; at most 2^31 - 1 bytes.
  std::size_t chunk_bytes = std::size_t{256} << 10;
  /// Chunks are handed to the messenger while fewer bytes than this are on their way to the peer.
  std::size_t bytes_in_flight = std::size_t{4} << 20;
  /// And while fewer are on their way than have gone in so long, as far as that is known: an urgent message
  /// waits behind them. Two chunks may always be.
  std::chrono::nanoseconds longest_wait = std::chrono::milliseconds(10);
};

/// One end of a message, as its caller began it.
template <typename Memory>
struct Transfer {
  Message message;
  Memory* memory = nullptr;
  std::size_t bytes = 0;
  double urgency = 0;
  CompletionListener* listener = nullptr;
  std::uint64_t tag = 0;
};
using Outgoing = Transfer<const std::byte>;
using Incoming = Transfer<std::byte>;

/// The messages of one rank, worked on by the thread that has the messenger.
///
/// A receive takes a slot that no other message from its peer has, posts receives for its first chunks there,
/// and then sends the peer its credit. The sender begins only with the credit, so that every chunk has its
/// place when it comes, and a sender that is ahead waits in its own memory. Of the messages that have
/// credit, the most urgent one gives each next chunk. Messages of the same channel and version meet in the
/// order in which they were begun.
///
/// A chunk that the messenger has can't be passed any more, so that it gets few of them: what goes to the
/// peer in `longest_wait`. That follows from how long the last chunks took which had about as much ahead of
/// them. Example: 4 MiB took 160 ms; then 256 KiB are on their way at a time, or two chunks, if that is more.
/// If these take 1 ms, 2.5 MiB are.
class Transfers {
 public:
  /// The messenger and the clock must outlive it.
  Transfers(Messenger& messenger, const Clock& clock, TransferOptions options);

  void receive(const Incoming& incoming);
  void send(const Outgoing& outgoing);

  // What the messenger tells.
  void credit(int peer, const Words& words);
  void refusal(int peer, const Words& words);
  void chunk_sent(std::uint64_t ticket);
  void chunk_received(std::uint64_t ticket);
  void chunk_withdrawn(std::uint64_t ticket);

  /// From now on tells an observer of the messages that begin to move, and peers when one to them does.
  void observe(std::shared_ptr<TransferObserver> observer) { observer_ = std::move(observer); }
  void beginning(int peer, const Words& words);

  /// The size of chunks from now on. Nothing that is larger may be under way.
  void set_chunk_bytes(std::size_t bytes) { options_.chunk_bytes = bytes; }

  /// Messages that this rank has sent to a peer since the start.
  std::int64_t sent(int peer) const {
    const auto known = peers_.find(peer);
    return known != peers_.end() ? known->second.sent : 0;
  }
  /// The peer sends no more than `messages` since the start, and takes nothing for which it has not given
  /// credit.
  void departed(int peer, std::int64_t messages);
  /// A peer that has departed without what this rank still expects of it.
  std::optional<int> missed() const;

  /// Messages that are begun and not complete.
  std::size_t pending() const { return incoming_.size() + outgoing_.size(); }

  /// From now on everything completes with an error: what the messenger works on when that ends, all else at
  /// once. Receives stay where peers may be sending, so that their chunks end too.
  void fail(std::exception_ptr error);
  /// After `fail`: messages whose last chunks the messenger still sends, to ranks other than this one.
  std::size_t sending_but_to(int rank) const;
  /// After `fail`, once no peer sends any more.
  void withdraw();
  /// Completes what the messenger still works on; it must not make progress any more.
  void abandon();

 private:
  /// A chunk that the messenger has.
  struct Chunk {
    std::int64_t begin = 0;      // the time when it got it
    std::size_t bytes_then = 0;  // on their way to the peer, with the chunk
  };
  struct Send : Outgoing {
    std::uint32_t slot = 0;
    std::size_t next = 0;  // the first byte that no chunk has taken yet
    bool all_taken = false;
    std::deque<Chunk> under_way = {};
    std::size_t unsent = 0;  // bytes of all chunks but those that it is done with
    std::shared_ptr<TransferObserver> observer = nullptr;  // that was told of its begin
  };
  struct Receive : Incoming {
    std::uint32_t slot = 0;
    bool has_slot = false;
    std::size_t next = 0;  // the first byte that no posted chunk covers yet
    bool all_posted = false;
    std::size_t posted = 0;     // chunks that the messenger has
    std::int64_t refused = -1;  // the size of the peer's message, where it is another one
    std::shared_ptr<TransferObserver> observer = nullptr;  // that was told of its begin
  };
  using Name = std::pair<std::uint32_t, std::int64_t>;  // channel and version
  struct Peer {
    std::map<Name, std::deque<std::uint64_t>> waiting_sends;  // without credit; tickets
    std::map<Name, std::deque<Words>> unused_credits;         // for sends that are yet to begin
    std::set<std::pair<double, std::uint64_t>> ready;         // urgency and ticket
    std::size_t window = 0;  // chunks are handed over while fewer bytes are under way
    std::size_t bytes_under_way = 0;
    std::size_t chunks_under_way = 0;
    std::vector<std::uint32_t> free_slots;
    std::uint32_t slots = 0;                          // that were ever in use
    std::map<std::uint32_t, std::uint64_t> receives;  // tickets by slot
    std::deque<std::uint64_t> slotless;               // receives that wait for a slot
    std::int64_t sent = 0;
    std::int64_t received = 0;
    std::optional<std::int64_t> departed_after;
  };

  Peer& peer_of(int rank);
  void post_chunks(std::uint64_t ticket, Receive& receive);
  void end_chunk(std::uint64_t ticket);
  void finish_receive(std::uint64_t ticket);
  void start_send(std::uint64_t ticket, Send& send, const Words& credit);
  void send_chunks(int rank);
  void fit_window(Peer& peer, const Chunk& gone) const;
  void begin_observed(Send& send);
  void finish_send(std::uint64_t ticket, std::exception_ptr error);
  void give_slots(Peer& peer);

  Messenger& messenger_;
  const Clock& clock_;
  std::shared_ptr<TransferObserver> observer_;
  TransferOptions options_;
  std::map<int, Peer> peers_;  // by rank, of those that messages go to or come from: few of many
  std::map<std::uint64_t, Send> outgoing_;
  std::map<std::uint64_t, Receive> incoming_;
  std::uint64_t next_ticket_ = 0;
  bool any_departed_ = false;
  std::exception_ptr failure_;
};

}  // namespace purine::net
