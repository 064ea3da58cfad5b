// What a run needs of its other processes: tensors sent and received, and a few words about the run itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "purine/core/error.h"
#include "purine/runtime/device.h"

namespace purine {

/// One version of a tensor on its way from a rank to another. Both ranks know it by these numbers, which
/// follow from the structure of the graph: nothing is negotiated.
struct Message {
  int peer = 0;               ///< the other rank
  std::uint32_t channel = 0;  ///< which copy of the graph; a rank pair uses each for one tensor alone
  std::int64_t version = 0;   ///< the iteration
};

/// A run that failed at another rank, or lost one: the same at all ranks but the first to know.
class RemoteError : public Error {
 public:
  /// Whether the rank can still say by itself what happened.
  enum class Rank : std::uint8_t { speaks, is_gone };

  RemoteError(int rank, std::string_view message, std::string_view hint = {}, Rank state = Rank::speaks)
      : Error("rank " + std::to_string(rank), message, hint), rank_(rank), state_(state) {}
  int rank() const { return rank_; }
  Rank state() const { return state_; }

 private:
  int rank_;
  Rank state_;
};

/// Told when bytes of a rank's messages move, by the endpoint's own thread, which must not be held up.
class TransferObserver {
 public:
  virtual ~TransferObserver() = default;
  /// The first bytes of a message are on their way out (`sends`), or in.
  virtual void message_begins(bool sends) = 0;
  /// The last ones have gone, or come; or the message has failed after it had begun.
  virtual void message_ends(bool sends, std::size_t bytes) = 0;
};

/// A process's end of the connections to the other processes of a run, its ranks. One thread of its own moves
/// bytes; nothing but `all_gather` blocks. All methods may be called by any thread.
///
/// Once a rank has failed, was lost, or was silent for longer than the stall limit, the endpoint has failed
/// for good: what was under way, and whatever is begun later, completes with a RemoteError that names the
/// rank and the cause.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The name of a rank's host, for messages.
  virtual std::string host(int rank) const = 0;

  /// Offers memory for a message, which is the credit that its sender waits for; several messages may be
  /// offered at a time, in any order. The listener is told when the bytes are there, and has the memory back
  /// then. A message of another size than `bytes` completes with an Error.
  virtual void receive(const Message& message, std::byte* memory, std::size_t bytes,
                       CompletionListener& listener, std::uint64_t tag) = 0;
  /// Sends a message once the peer has offered memory for it. Of those that can go to a peer, the smallest
  /// `urgency` goes first, and a large one is sent in chunks, between which a more urgent one may pass it.
  /// The listener is told when the memory may be overwritten.
  virtual void send(const Message& message, const std::byte* memory, std::size_t bytes, double urgency,
                    CompletionListener& listener, std::uint64_t tag) = 0;

  /// What all ranks say, by rank. A collective call: all ranks make these calls in the same order. Blocks;
  /// throws RemoteError if the run fails meanwhile.
  virtual std::vector<std::string> all_gather(std::string_view words) = 0;

  /// Tells all ranks that this one begins no iteration of run `run` from iteration `end` on, and returns at
  /// once. Runs are numbered alike at all ranks; they may be nested, and a rank says it once for each. It is
  /// how ranks agree on where a run ends, early or not: see Session.
  virtual void announce_end(std::int64_t run, std::int64_t end) = 0;
  /// What each rank has announced for a run, by rank, as far as this one knows; -1 where nothing. Throws
  /// RemoteError once the endpoint has failed.
  virtual std::vector<std::int64_t> announced_ends(std::int64_t run) const = 0;
  /// Tells all ranks that this one can't go on, and why. Only the first cause counts. Returns at once.
  virtual void fail(std::string_view cause) = 0;

  /// From now on an observer is told of the messages that begin to move; null: none is. A receiver learns
  /// from the sender when a message begins, so that all ranks have one, or none. Those that move already end
  /// untold.
  virtual void observe(std::shared_ptr<TransferObserver> observer) = 0;

  /// What the slowest link between the ranks carries, as it was measured: fits to it how much is on its way
  /// at a time, so that an urgent message waits for little. A collective call: all ranks say the same before
  /// they begin other messages, and have none under way.
  virtual void fit_to(double bytes_per_second) = 0;
};

}  // namespace purine
