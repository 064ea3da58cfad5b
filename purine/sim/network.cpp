#include "purine/sim/network.h"

#include <algorithm>
#include <chrono>

#include "purine/core/error.h"
#include "purine/net/transport/pauses.h"

namespace purine::sim {
namespace {

constexpr std::uint64_t card_bit = std::uint64_t{1} << 63U;  // the tag is a card's number
constexpr std::uint32_t none = 0xffffffffU;

std::int64_t duration(std::size_t bytes, double bytes_per_second) {
  return bytes_per_second > 0 ? nanoseconds(static_cast<double>(bytes) / bytes_per_second) : 0;
}

}  // namespace

std::int64_t next_look(std::int64_t last_event, std::int64_t time) {
  using std::chrono::nanoseconds;
  nanoseconds look(last_event);
  while (look.count() < time) {
    const nanoseconds pause = net::pause_after(look - nanoseconds(last_event));
    if (pause == net::longest_pause) {
      // From here on they are alike.
      const std::int64_t pauses = (time - look.count() + pause.count() - 1) / pause.count();
      return look.count() + pauses * pause.count();
    }
    look += pause;
  }
  return look.count();
}

class Network::HostMessenger final : public net::Messenger {
 public:
  HostMessenger(Network& network, int host)
      : network_(network), host_(host), name_("host " + std::to_string(host)) {}

  int rank() const override { return host_; }
  int size() const override { return static_cast<int>(network_.cards_.size()); }
  const std::string& host(int rank) const override { return network_.card(rank).messenger->name_; }
  std::uint32_t slots() const override { return 1U << 20U; }

  void send_words(int peer, std::string words) override {
    network_.send_words(host_, peer, std::move(words));
  }
  void send_chunk(int peer, std::uint32_t slot, const std::byte*, std::size_t bytes,
                  std::uint64_t ticket) override {
    network_.send_chunk(host_, peer, slot, bytes, ticket);
  }
  void receive_chunk(int peer, std::uint32_t slot, std::byte*, std::size_t, std::uint64_t ticket) override {
    network_.card(host_).posted[{peer, slot}].push_back(ticket);
  }
  void withdraw(std::uint64_t) override { throw Error("network", "a simulated transfer can't be withdrawn"); }
  void bound_unsent(std::size_t bytes) override {
    double& buffer = network_.card(host_).options.buffer_bytes;
    buffer = std::min(buffer, 2 * static_cast<double>(bytes));  // as much again is on its way
  }
  bool sending() const override { return network_.card(host_).sending; }
  bool poll(net::MessengerListener&) override { return false; }
  void finish() override {}

 private:
  Network& network_;
  const int host_;
  const std::string name_;
};

Network::Card::Card(const CardOptions& card_options, std::unique_ptr<HostMessenger> host_messenger,
                    const Clock& clock)
    : options(card_options),
      messenger(std::move(host_messenger)),
      outgoing_bucket(options.bytes_per_second, options.burst_bytes),
      incoming_bucket(options.bytes_per_second, options.burst_bytes),
      outgoing(clock),
      incoming(clock) {}

Network::Card::~Card() = default;

Network::Network(VirtualTime& time, const std::vector<CardOptions>& cards, const SwitchOptions& all)
    : time_(time), switch_(all) {
  for (const CardOptions& options : cards) {
    const int host = static_cast<int>(cards_.size());
    cards_.push_back(std::make_unique<Card>(options, std::make_unique<HostMessenger>(*this, host), time));
  }
}

Network::~Network() = default;

net::Messenger& Network::messenger(int host) {
  return *card(host).messenger;
}

void Network::listen(int host, net::MessengerListener& listener, OverlapMeter& meter, Cores& cores) {
  card(host).listener = &listener;
  card(host).both = &meter;
  card(host).cores = &cores;
  const CardOptions& options = card(host).options;
  card(host).has_thread =
      options.core_seconds_per_byte > 0 || options.core_seconds_per_message > 0 || cores.have_turns();
}

OverlapMeter& Network::outgoing(int host) {
  return card(host).outgoing;
}

OverlapMeter& Network::incoming(int host) {
  return card(host).incoming;
}

std::uint32_t Network::add_delivery(Delivery delivery) {
  if (first_free_ == none) {
    deliveries_.push_back(std::move(delivery));
    return static_cast<std::uint32_t>(deliveries_.size() - 1);
  }
  const std::uint32_t index = first_free_;
  first_free_ = deliveries_[index].next_free;
  deliveries_[index] = std::move(delivery);
  return index;
}

void Network::send_words(int from, int to, std::string words) {
  card(from).last_event = time_.now();
  Delivery delivery;
  delivery.from = from;
  delivery.to = to;
  delivery.words = std::move(words);
  work_on(from, add_delivery(std::move(delivery)));
}

void Network::send_chunk(int from, int to, std::uint32_t slot, std::size_t bytes, std::uint64_t ticket) {
  card(from).last_event = time_.now();
  Delivery delivery;
  delivery.from = from;
  delivery.to = to;
  delivery.kind = Delivery::Kind::chunk;
  delivery.slot = slot;
  delivery.bytes = bytes;
  delivery.ticket = ticket;
  work_on(from, add_delivery(std::move(delivery)));
}

// The host's transport works on a message, after those before it; then it goes on.
void Network::work_on(int host, std::uint32_t index) {
  Card& at = card(host);
  if (!at.has_thread) return go_on(index);
  at.thread.push_back(index);
  if (at.thread.size() == 1) begin_work(host, false);
}

void Network::begin_work(int host, bool goes_on) {
  Card& at = card(host);
  const auto bytes = static_cast<double>(deliveries_[at.thread.front()].bytes);
  const double seconds = at.options.core_seconds_per_message + bytes * at.options.core_seconds_per_byte;
  at.cores->serve(nanoseconds(seconds), *this, static_cast<std::uint64_t>(host), goes_on);
}

void Network::work_done(std::uint64_t host) {
  Card& at = card(static_cast<int>(host));
  const std::uint32_t index = at.thread.front();
  go_on(index);
  // What follows from it at once is done in the same turn.
  at.thread.pop_front();
  if (!at.thread.empty()) begin_work(static_cast<int>(host), true);
}

void Network::go_on(std::uint32_t index) {
  if (deliveries_[index].stage == Delivery::Stage::leaving) {
    leave(index);
  } else {
    deliver(index);
  }
}

void Network::leave(std::uint32_t index) {
  Delivery& delivery = deliveries_[index];
  delivery.stage = Delivery::Stage::on_its_way;
  Card& sender = card(delivery.from);
  if (delivery.kind == Delivery::Kind::words) {
    const double latency = sender.options.latency + switch_.latency + sender.options.message_seconds;
    return time_.schedule(time_.now() + nanoseconds(latency), *this, index);
  }
  const int from = delivery.from;
  const int to = delivery.to;
  std::deque<std::uint32_t>& waiting = sender.waiting[to];
  if (waiting.empty()) sender.turns.push_back(to);
  waiting.push_back(index);
  if (sender.options.buffer_bytes > 0)
    sender.buffers[to].outside.emplace_back(delivery.bytes, delivery.ticket);
  if (!sender.sending) send_next_chunk(from);
  if (sender.options.buffer_bytes > 0) take_chunks(from, to, sender.has_thread);
}

// The system takes what finds room. The transport's thread learns of it at once if it is at work, since it
// gives the system a chunk, else when it looks.
void Network::take_chunks(int from, int to, bool thread_is_at_work) {
  Card& sender = card(from);
  Buffer& buffer = sender.buffers[to];
  while (!buffer.outside.empty()) {
    const auto [bytes, ticket] = buffer.outside.front();
    if (buffer.bytes > 0 && static_cast<double>(buffer.bytes + bytes) > sender.options.buffer_bytes) return;
    buffer.outside.pop_front();
    buffer.bytes += bytes;
    if (thread_is_at_work) {
      sender.listener->chunk_sent(ticket);
      continue;
    }
    Delivery taken;
    taken.stage = Delivery::Stage::arrived;
    taken.kind = Delivery::Kind::taken;
    taken.from = taken.to = from;
    taken.ticket = ticket;
    time_.schedule(next_look(sender.last_event, time_.now()), *this, add_delivery(std::move(taken)));
  }
}

void Network::send_next_chunk(int from) {
  Card& sender = card(from);
  sender.sending = !sender.turns.empty();
  if (!sender.sending) return;
  const int to = sender.turns.front();
  sender.turns.pop_front();
  std::deque<std::uint32_t>& waiting = sender.waiting[to];
  const std::uint32_t index = waiting.front();
  waiting.pop_front();
  if (waiting.empty()) {
    sender.waiting.erase(to);
  } else {
    sender.turns.push_back(to);
  }
  const std::size_t bytes = deliveries_[index].bytes;
  sender.leaving = {to, bytes};
  const std::int64_t sent = nanoseconds(sender.options.message_seconds) +
                            sender.outgoing_bucket.pass(bytes, time_.now(), time_.now());
  sender.outgoing.move_begins();
  sender.both->move_begins();
  time_.schedule(sent, *this, card_bit | static_cast<std::uint64_t>(from));
  const std::int64_t latency = nanoseconds(sender.options.latency + switch_.latency);
  const std::int64_t first = time_.now() + latency;  // byte
  std::int64_t last = sent + latency;
  if (switch_.bytes_per_second > 0) {
    // It takes other chunks meanwhile, as far as its own speed goes.
    switch_free_at_ = std::max(switch_free_at_, first) + duration(bytes, switch_.bytes_per_second);
    last = std::max(last, switch_free_at_);
  }
  last = card(to).incoming_bucket.pass(bytes, first, last);
  card(to).incoming.move_begins();
  card(to).both->move_begins();
  time_.schedule(last, *this, index);
}

void Network::act(std::uint64_t tag) {
  if ((tag & card_bit) != 0) {
    const int from = static_cast<int>(tag & ~card_bit);
    Card& sender = card(from);
    sender.outgoing.move_ends(0);
    sender.both->move_ends(0);
    if (sender.options.buffer_bytes > 0) {
      const auto [to, bytes] = sender.leaving;
      sender.buffers[to].bytes -= bytes;
      take_chunks(from, to, false);
    }
    send_next_chunk(from);
    return;
  }
  const auto index = static_cast<std::uint32_t>(tag);
  Delivery& delivery = deliveries_[index];
  if (delivery.stage == Delivery::Stage::on_its_way) {
    delivery.stage = Delivery::Stage::arrived;
    if (delivery.kind == Delivery::Kind::chunk) {
      card(delivery.from).outgoing.moved(static_cast<std::int64_t>(delivery.bytes));
      card(delivery.to).incoming.move_ends(static_cast<std::int64_t>(delivery.bytes));
      card(delivery.to).both->move_ends(static_cast<std::int64_t>(delivery.bytes));
    }
    const std::int64_t look = next_look(card(delivery.to).last_event, time_.now());
    if (look > time_.now()) return time_.schedule(look, *this, index);
  }
  work_on(delivery.to, index);
}

void Network::deliver(std::uint32_t index) {
  const Delivery delivery = std::move(deliveries_[index]);
  deliveries_[index].next_free = first_free_;
  first_free_ = index;
  Card& receiver = card(delivery.to);
  receiver.last_event = time_.now();
  if (delivery.kind == Delivery::Kind::taken) return receiver.listener->chunk_sent(delivery.ticket);
  if (delivery.kind == Delivery::Kind::words) {
    receiver.listener->words_arrived(delivery.from, delivery.words);
    return;
  }
  const auto posted = receiver.posted.find({delivery.from, delivery.slot});
  PURINE_CHECK(posted != receiver.posted.end());
  const std::uint64_t ticket = posted->second.front();
  posted->second.pop_front();
  if (posted->second.empty()) receiver.posted.erase(posted);
  receiver.listener->chunk_received(delivery.from, ticket);
  Card& sender = card(delivery.from);
  if (sender.options.buffer_bytes > 0) return;  // it was told before
  sender.last_event = time_.now();
  sender.listener->chunk_sent(delivery.ticket);
}

}  // namespace purine::sim
