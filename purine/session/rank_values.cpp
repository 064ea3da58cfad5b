#include "purine/session/rank_values.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "purine/core/error.h"
#include "purine/net/transport/waiter.h"
#include "purine/session/whole_values.h"

namespace purine {
namespace {

using parallel::WholeVariable;

/// Channels that no Copy of a graph has: they are numbers of operators.
constexpr std::uint32_t first_channel = 0x80000000U;

/// The messages of one collective call: a channel for each piece, in the order that all ranks go through
/// them.
class PieceMessages {
 public:
  explicit PieceMessages(Runtime& runtime) : endpoint_(*runtime.endpoint()), version_(runtime.next_run()) {}

  /// The next piece is not moved between this rank and another one.
  void skip() { ++channel_; }
  void send(int peer, std::span<const std::byte> bytes) {
    endpoint_.send({peer, channel_++, version_}, bytes.data(), bytes.size(), 0, waiter_, 0);
    ++begun_;
  }
  void receive(int peer, std::span<std::byte> bytes) {
    endpoint_.receive({peer, channel_++, version_}, bytes.data(), bytes.size(), waiter_, 0);
    ++begun_;
  }
  /// Waits for all that was begun.
  void wait() { waiter_.wait(std::exchange(begun_, 0)); }

 private:
  Endpoint& endpoint_;
  const std::int64_t version_;
  std::uint32_t channel_ = first_channel;
  int begun_ = 0;
  net::Waiter waiter_;
};

std::size_t bytes_of(const WholeVariable& variable, const WholeVariable::Piece& piece) {
  std::size_t bytes = size_of(variable.info.dtype);
  for (const parallel::Range& range : piece.ranges) bytes *= static_cast<std::size_t>(range.size());
  return bytes;
}

std::vector<io::HostTensor> receive_wholes(Runtime& runtime, std::span<const WholeVariable> variables,
                                           const Variables& values) {
  PieceMessages messages(runtime);
  std::vector<io::HostTensor> wholes;
  std::vector<std::byte> received;
  for (const WholeVariable& variable : variables) {
    wholes.push_back(gather(variable, [&](const WholeVariable::Piece& piece) -> std::span<const std::byte> {
      if (piece.location.rank == runtime.rank()) {
        messages.skip();
        return values.at(piece.path).bytes();
      }
      received.resize(bytes_of(variable, piece));
      messages.receive(piece.location.rank, received);
      messages.wait();
      return received;
    }));
  }
  std::sort(wholes.begin(), wholes.end(),
            [](const io::HostTensor& a, const io::HostTensor& b) { return a.name < b.name; });
  return wholes;
}

void send_pieces(Runtime& runtime, std::span<const WholeVariable> variables, const Variables& values) {
  PieceMessages messages(runtime);
  for (const WholeVariable& variable : variables) {
    for (const std::size_t number : variable.distinct()) {
      const WholeVariable::Piece& piece = variable.pieces[number];
      if (piece.location.rank == runtime.rank()) {
        messages.send(0, values.at(piece.path).bytes());
      } else {
        messages.skip();
      }
    }
  }
  messages.wait();
}

void send_parts(Runtime& runtime, std::span<const WholeVariable> variables, const ReadWhole& read) {
  PieceMessages messages(runtime);
  for (const WholeVariable& variable : variables) {
    const std::span<const std::byte> whole = read(variable);
    std::vector<std::vector<std::byte>> parts;
    for (const WholeVariable::Piece& piece : variable.pieces) {
      if (piece.location.rank == runtime.rank()) {
        messages.skip();
        continue;
      }
      std::vector<std::byte>& part = parts.emplace_back(bytes_of(variable, piece));
      copy_from_whole(variable.info, piece.ranges, whole, part);
      messages.send(piece.location.rank, part);
    }
    messages.wait();
  }
}

void receive_parts(Runtime& runtime, std::span<const WholeVariable> variables, Variables& values) {
  PieceMessages messages(runtime);
  for (const WholeVariable& variable : variables) {
    for (const WholeVariable::Piece& piece : variable.pieces) {
      if (piece.location.rank == runtime.rank()) {
        messages.receive(0, values.at(piece.path).bytes());
      } else {
        messages.skip();
      }
    }
  }
  messages.wait();
}

}  // namespace

std::vector<io::HostTensor> gather_whole_values(Runtime& runtime, std::span<const WholeVariable> variables,
                                                const Variables& values) {
  if (runtime.endpoint() == nullptr) return whole_values(variables, values);
  if (runtime.rank() == 0) return receive_wholes(runtime, variables, values);
  send_pieces(runtime, variables, values);
  return {};
}

void divide_whole_values(Runtime& runtime, std::span<const WholeVariable> variables, const ReadWhole& read,
                         Variables& values) {
  if (runtime.rank() != 0) {
    receive_parts(runtime, variables, values);
    return;
  }
  const auto read_and_set = [&](const WholeVariable& variable) {
    const std::span<const std::byte> whole = read(variable);
    set_whole_value(variable, whole, values);
    return whole;
  };
  try {
    if (runtime.endpoint() != nullptr) {
      send_parts(runtime, variables, read_and_set);
    } else {
      for (const WholeVariable& variable : variables) read_and_set(variable);
    }
  } catch (const RemoteError&) {
    throw;
  } catch (const Error& error) {
    Endpoint* endpoint = runtime.endpoint();
    if (endpoint != nullptr) endpoint->fail("at " + endpoint->host(0) + ", " + error.what());
    throw;
  }
}

}  // namespace purine
