// Non-blocking messages between ranks: what an endpoint needs of the library that carries it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace purine::net {

/// Told by Messenger::poll what has happened.
class MessengerListener {
 public:
  virtual ~MessengerListener() = default;
  virtual void words_arrived(int peer, std::string_view words) = 0;
  virtual void chunk_sent(std::uint64_t ticket) = 0;
  virtual void chunk_received(int peer, std::uint64_t ticket) = 0;
  /// A receive that was withdrawn has ended without a chunk.
  virtual void chunk_withdrawn(std::uint64_t ticket) = 0;
  /// A message to or from a rank ended with an error; it ends with none of the calls above.
  virtual void connection_failed(int peer, std::string_view reason) = 0;
};

/// A message-passing library as one rank sees it. Made and used by one thread; nothing blocks but making it
/// and `finish`.
///
/// Words are short messages that need no receive, and arrive in the order in which their sender sent them. A
/// chunk is received into memory that was named before: the n-th chunk that a peer sends for a slot goes
/// where the n-th receive for it says, and both must be of the same size.
class Messenger {
 public:
  static constexpr std::size_t longest_words = 4096;  ///< bytes

  virtual ~Messenger() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& host(int rank) const = 0;
  /// Slots are numbered from 0 to below this.
  virtual std::uint32_t slots() const = 0;

  virtual void send_words(int peer, std::string words) = 0;
  virtual void send_chunk(int peer, std::uint32_t slot, const std::byte* memory, std::size_t bytes,
                          std::uint64_t ticket) = 0;
  virtual void receive_chunk(int peer, std::uint32_t slot, std::byte* memory, std::size_t bytes,
                             std::uint64_t ticket) = 0;
  /// Withdraws the receives with this ticket: each still ends by one call of the listener. One whose chunk is
  /// on its way already ends when that has come.
  virtual void withdraw(std::uint64_t ticket) = 0;
  /// Has the system take no more for a peer while it keeps so many bytes that have yet to be sent, where it
  /// can be told. Holds for the connections that there are, so it is to be said again from time to time.
  virtual void bound_unsent(std::size_t bytes) = 0;
  /// True if words or chunks are being sent.
  virtual bool sending() const = 0;

  /// Makes progress, and says what has happened since the last time; false if nothing.
  virtual bool poll(MessengerListener& listener) = 0;
  /// Ends the library's work in agreement with all other ranks, who call it as well. Without it, the library
  /// is left as it is.
  virtual void finish() = 0;
};

/// MPI. Initialises it, and `finish` finalises it, unless the program has initialised it before; other
/// threads of the program may then call it at the same time, for which it must provide MPI_THREAD_MULTIPLE.
/// No chunk may be larger than `chunk_bytes`. Blocks until all ranks have come. Throws Error where this build
/// has no MPI, or MPI can't be used.
std::unique_ptr<Messenger> start_mpi(std::size_t chunk_bytes);

/// Which MPI this is: `Open MPI v4.1.4`.
std::string mpi_library();

}  // namespace purine::net
