#include "purine/net/transport/transfers.h"

#include <algorithm>
#include <string>

#include "purine/core/error.h"

namespace purine::net {
namespace {

/// Small messages count by number: a peer has at most so many chunks of any size under way.
constexpr std::size_t chunks_in_flight = 64;

std::string name_of(const Message& message) {
  return "channel " + std::to_string(message.channel) + ", version " + std::to_string(message.version);
}

constexpr const char* same_graph_hint = "do both ranks run the same program on the same job?";

std::exception_ptr oversize(const Message& message, std::size_t bytes, std::int64_t offered) {
  return std::make_exception_ptr(Error("send",
                                       name_of(message) + " has " + std::to_string(bytes) + " bytes, rank " +
                                           std::to_string(message.peer) + " has offered memory for " +
                                           std::to_string(offered),
                                       same_graph_hint));
}

std::exception_ptr refused(const Message& message, std::size_t offered, std::int64_t bytes) {
  return std::make_exception_ptr(Error("receive",
                                       name_of(message) + " from rank " + std::to_string(message.peer) +
                                           " has " + std::to_string(bytes) + " bytes, memory for " +
                                           std::to_string(offered) + " was offered",
                                       same_graph_hint));
}

/// Takes the first of those that wait under a name.
template <typename Name, typename Value>
std::optional<Value> take_first(std::map<Name, std::deque<Value>>& waiting, const Name& name) {
  const auto found = waiting.find(name);
  if (found == waiting.end()) return std::nullopt;
  const Value value = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) waiting.erase(found);
  return value;
}

}  // namespace

Transfers::Transfers(Messenger& messenger, const Clock& clock, TransferOptions options)
    : messenger_(messenger), clock_(clock), options_(options) {}

Transfers::Peer& Transfers::peer_of(int rank) {
  const auto [found, is_new] = peers_.try_emplace(rank);
  if (is_new) found->second.window = options_.bytes_in_flight;
  return found->second;
}

void Transfers::receive(const Incoming& incoming) {
  if (failure_) return incoming.listener->completed(incoming.tag, failure_);
  const std::uint64_t ticket = next_ticket_++;
  incoming_.emplace(ticket, Receive{incoming});
  Peer& peer = peer_of(incoming.message.peer);
  peer.slotless.push_back(ticket);
  give_slots(peer);
}

void Transfers::give_slots(Peer& peer) {
  while (!peer.slotless.empty()) {
    if (peer.free_slots.empty()) {
      if (peer.slots == messenger_.slots()) return;
      peer.free_slots.push_back(peer.slots++);
    }
    const std::uint64_t ticket = peer.slotless.front();
    peer.slotless.pop_front();
    Receive& receive = incoming_.at(ticket);
    receive.slot = peer.free_slots.back();
    receive.has_slot = true;
    peer.free_slots.pop_back();
    peer.receives.emplace(receive.slot, ticket);
    post_chunks(ticket, receive);
    messenger_.send_words(receive.message.peer, Words{.kind = Words::Kind::credit,
                                                      .channel = receive.message.channel,
                                                      .version = receive.message.version,
                                                      .bytes = static_cast<std::int64_t>(receive.bytes),
                                                      .slot = receive.slot}
                                                    .encode());
  }
}

void Transfers::post_chunks(std::uint64_t ticket, Receive& receive) {
  // Twice what the sender has under way: it may see that a chunk has gone before this rank sees that it came.
  const std::size_t window = 2 * (options_.bytes_in_flight / options_.chunk_bytes + 1);
  while (!receive.all_posted && receive.posted < window) {
    const std::size_t bytes = std::min(options_.chunk_bytes, receive.bytes - receive.next);
    messenger_.receive_chunk(receive.message.peer, receive.slot, receive.memory + receive.next, bytes,
                             ticket);
    ++receive.posted;
    receive.next += bytes;
    receive.all_posted = receive.next == receive.bytes;
  }
}

void Transfers::chunk_received(std::uint64_t ticket) {
  Receive& receive = incoming_.at(ticket);
  if (!failure_ && receive.refused < 0) post_chunks(ticket, receive);
  end_chunk(ticket);
}

void Transfers::chunk_withdrawn(std::uint64_t ticket) {
  end_chunk(ticket);
}

void Transfers::end_chunk(std::uint64_t ticket) {
  if (--incoming_.at(ticket).posted == 0) finish_receive(ticket);
}

void Transfers::beginning(int rank, const Words& words) {
  if (!observer_) return;
  const Peer& peer = peer_of(rank);
  const auto found = peer.receives.find(words.slot);
  if (found == peer.receives.end()) return;  // it has come already
  Receive& receive = incoming_.at(found->second);
  if (Name{words.channel, words.version} != Name{receive.message.channel, receive.message.version}) return;
  if (receive.observer) return;
  receive.observer = observer_;
  receive.observer->message_begins(false);
}

void Transfers::finish_receive(std::uint64_t ticket) {
  const auto found = incoming_.find(ticket);
  const Receive receive = found->second;
  incoming_.erase(found);
  Peer& peer = peer_of(receive.message.peer);
  ++peer.received;
  if (receive.has_slot) {
    peer.receives.erase(receive.slot);
    peer.free_slots.push_back(receive.slot);
    if (!failure_) give_slots(peer);
  }
  if (receive.observer) {
    receive.observer->message_ends(false, receive.bytes);
  } else if (observer_ && !failure_) {  // what its sender said of its begin is still to be heard
    observer_->message_begins(false);
    observer_->message_ends(false, receive.bytes);
  }
  std::exception_ptr error = failure_;
  if (!error && receive.refused >= 0) error = refused(receive.message, receive.bytes, receive.refused);
  receive.listener->completed(receive.tag, error);
}

void Transfers::refusal(int rank, const Words& words) {
  if (failure_) return;
  const std::uint64_t ticket = peer_of(rank).receives.at(words.slot);
  incoming_.at(ticket).refused = words.bytes;
  messenger_.withdraw(ticket);
}

void Transfers::send(const Outgoing& outgoing) {
  if (failure_) return outgoing.listener->completed(outgoing.tag, failure_);
  const std::uint64_t ticket = next_ticket_++;
  Send& send = outgoing_.emplace(ticket, Send{outgoing}).first->second;
  send.unsent = send.bytes;
  Peer& peer = peer_of(send.message.peer);
  const Name name{send.message.channel, send.message.version};
  if (const std::optional<Words> words = take_first(peer.unused_credits, name)) {
    start_send(ticket, send, *words);
  } else {
    peer.waiting_sends[name].push_back(ticket);
  }
}

void Transfers::credit(int rank, const Words& words) {
  if (failure_) return;
  Peer& peer = peer_of(rank);
  const Name name{words.channel, words.version};
  if (const std::optional<std::uint64_t> ticket = take_first(peer.waiting_sends, name)) {
    start_send(*ticket, outgoing_.at(*ticket), words);
  } else {
    peer.unused_credits[name].push_back(words);
  }
}

void Transfers::start_send(std::uint64_t ticket, Send& send, const Words& credit) {
  const int rank = send.message.peer;
  if (credit.bytes != static_cast<std::int64_t>(send.bytes)) {
    messenger_.send_words(rank, Words{.kind = Words::Kind::refusal,
                                      .bytes = static_cast<std::int64_t>(send.bytes),
                                      .slot = credit.slot}
                                    .encode());
    return finish_send(ticket, oversize(send.message, send.bytes, credit.bytes));
  }
  send.slot = credit.slot;
  peer_of(rank).ready.emplace(send.urgency, ticket);
  send_chunks(rank);
}

void Transfers::send_chunks(int rank) {
  Peer& peer = peer_of(rank);
  while (!peer.ready.empty() && peer.bytes_under_way < peer.window &&
         peer.chunks_under_way < chunks_in_flight) {
    const std::uint64_t ticket = peer.ready.begin()->second;
    Send& send = outgoing_.at(ticket);
    const std::size_t bytes = std::min(options_.chunk_bytes, send.bytes - send.next);
    if (send.next == 0 && observer_) begin_observed(send);
    messenger_.send_chunk(rank, send.slot, send.memory + send.next, bytes, ticket);
    ++peer.chunks_under_way;
    peer.bytes_under_way += bytes;
    send.under_way.push_back({clock_.now(), peer.bytes_under_way});
    send.next += bytes;
    send.all_taken = send.next == send.bytes;
    if (send.all_taken) peer.ready.erase(peer.ready.begin());
  }
}

void Transfers::begin_observed(Send& send) {
  messenger_.send_words(send.message.peer, Words{.kind = Words::Kind::beginning,
                                                 .channel = send.message.channel,
                                                 .version = send.message.version,
                                                 .slot = send.slot}
                                               .encode());
  send.observer = observer_;
  send.observer->message_begins(true);
}

void Transfers::chunk_sent(std::uint64_t ticket) {
  Send& send = outgoing_.at(ticket);
  const int rank = send.message.peer;
  Peer& peer = peer_of(rank);
  const std::size_t bytes = std::min(options_.chunk_bytes, send.unsent);
  send.unsent -= bytes;
  peer.bytes_under_way -= bytes;
  --peer.chunks_under_way;
  fit_window(peer, send.under_way.front());
  send.under_way.pop_front();
  if (send.under_way.empty() && (send.all_taken || failure_)) finish_send(ticket, failure_);
  if (!failure_) send_chunks(rank);
}

// A chunk that had little ahead of it, and went soon, says how often this thread looks, not how fast the peer
// takes what comes.
void Transfers::fit_window(Peer& peer, const Chunk& gone) const {
  const std::int64_t took = std::max<std::int64_t>(1, clock_.now() - gone.begin);
  const std::int64_t wanted = options_.longest_wait.count();
  if (took <= wanted && gone.bytes_then < peer.window / 2) return;
  const double bytes =
      static_cast<double>(gone.bytes_then) / static_cast<double>(took) * static_cast<double>(wanted);
  const std::size_t two_chunks = std::min(options_.chunk_bytes + 1, options_.bytes_in_flight);
  peer.window =
      std::clamp(bytes < static_cast<double>(options_.bytes_in_flight) ? static_cast<std::size_t>(bytes)
                                                                       : options_.bytes_in_flight,
                 two_chunks, options_.bytes_in_flight);
}

void Transfers::finish_send(std::uint64_t ticket, std::exception_ptr error) {
  const auto found = outgoing_.find(ticket);
  const Send send = found->second;
  outgoing_.erase(found);
  ++peer_of(send.message.peer).sent;
  if (send.observer) send.observer->message_ends(true, send.bytes);
  send.listener->completed(send.tag, std::move(error));
}

void Transfers::departed(int rank, std::int64_t messages) {
  peer_of(rank).departed_after = messages;
  any_departed_ = true;
}

std::optional<int> Transfers::missed() const {
  if (!any_departed_) return std::nullopt;
  for (const auto& [rank, peer] : peers_) {
    if (!peer.departed_after) continue;
    const bool receives = !peer.receives.empty() || !peer.slotless.empty();
    if ((receives && peer.received == *peer.departed_after) || !peer.waiting_sends.empty()) {
      return rank;
    }
  }
  return std::nullopt;
}

void Transfers::fail(std::exception_ptr error) {
  failure_ = std::move(error);
  for (auto& [rank, peer] : peers_) {
    peer.waiting_sends.clear();
    peer.unused_credits.clear();
    peer.ready.clear();
    peer.slotless.clear();
  }
  for (auto next = outgoing_.begin(); next != outgoing_.end();) {
    const auto send = next++;
    if (send->second.under_way.empty()) finish_send(send->first, failure_);
  }
  for (auto next = incoming_.begin(); next != incoming_.end();) {
    const auto receive = next++;
    if (receive->second.posted == 0) finish_receive(receive->first);
  }
}

std::size_t Transfers::sending_but_to(int rank) const {
  return static_cast<std::size_t>(std::count_if(outgoing_.begin(), outgoing_.end(), [&](const auto& send) {
    return send.second.message.peer != rank;
  }));
}

void Transfers::withdraw() {
  for (const auto& [ticket, receive] : incoming_) messenger_.withdraw(ticket);
}

void Transfers::abandon() {
  while (!outgoing_.empty()) finish_send(outgoing_.begin()->first, failure_);
  while (!incoming_.empty()) finish_receive(incoming_.begin()->first);
}

}  // namespace purine::net
