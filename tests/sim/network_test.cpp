// The network alone, and under the transport of real runs.
#include "purine/sim/network.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "purine/net/transport/transfers.h"
#include "tests/sim/units.h"

namespace purine::sim {
namespace {

// A host that sends and receives through the real transport, and notes when its messages end.
class Host final : public net::MessengerListener, public CompletionListener {
 public:
  Host(VirtualTime& time, Network& network, int number, net::TransferOptions options)
      : meter(time), cores(time, 1, 1), time_(time), transfers_(network.messenger(number), time, options) {
    network.listen(number, *this, meter, cores);
  }

  void send(int peer, std::uint32_t channel, std::size_t bytes, double urgency = 0) {
    transfers_.send({{peer, channel, 0}, memory(), bytes, urgency, this, channel});
  }
  void receive(int peer, std::uint32_t channel, std::size_t bytes) {
    transfers_.receive({{peer, channel, 0}, memory(), bytes, 0, this, channel + 1000});
  }

  void words_arrived(int peer, std::string_view words) override {
    transfers_.credit(peer, net::Words::decode(words));
  }
  void chunk_sent(std::uint64_t ticket) override { transfers_.chunk_sent(ticket); }
  void chunk_received(int, std::uint64_t ticket) override { transfers_.chunk_received(ticket); }
  void chunk_withdrawn(std::uint64_t) override {}
  void connection_failed(int, std::string_view) override {}
  void completed(std::uint64_t tag, std::exception_ptr error) override {
    EXPECT_FALSE(error);
    ended[tag] = time_.now();
    order.push_back(tag);
  }

  std::map<std::uint64_t, std::int64_t> ended;  // by channel; + 1000 for receives
  std::vector<std::uint64_t> order;
  OverlapMeter meter;
  Cores cores;

 private:
  std::byte* memory() { return reinterpret_cast<std::byte*>(this); }
  VirtualTime& time_;
  net::Transfers transfers_;
};

class Hosts {
 public:
  Hosts(const std::vector<CardOptions>& cards, const SwitchOptions& all, net::TransferOptions options = {})
      : network(time, cards, all) {
    for (std::size_t i = 0; i < cards.size(); ++i) {
      hosts.push_back(std::make_unique<Host>(time, network, static_cast<int>(i), options));
    }
  }
  Host& operator[](std::size_t host) { return *hosts[host]; }
  void run() {
    while (time.advance()) {
    }
  }

  VirtualTime time;
  Network network;
  std::vector<std::unique_ptr<Host>> hosts;
};

constexpr CardOptions gigabyte{.bytes_per_second = 1e9};
constexpr std::size_t megabyte = 1'000'000;
// Transports look for what has come in pauses of at most this.
constexpr std::int64_t pause = 1000 * us;

TEST(NetworkTest, AMessageTakesItsBytesAndItsLatencies) {
  Hosts hosts({{.bytes_per_second = 1e9, .latency = 30e-6}, gigabyte}, {.latency = 10e-6},
              {.chunk_bytes = 100 * megabyte, .bytes_in_flight = megabyte});
  hosts[1].receive(0, 5, 20 * megabyte);
  hosts[0].send(1, 5, 20 * megabyte);
  hosts.run();
  // The credit: 10 us. The message: 20 ms and 40 us.
  EXPECT_GE(hosts[1].ended.at(1005), 20'050 * us);
  EXPECT_LE(hosts[1].ended.at(1005), 20'050 * us + 2 * pause);
  EXPECT_EQ(hosts.network.outgoing(0).overlap().bytes, 20'000'000);
  EXPECT_EQ(hosts.network.outgoing(0).overlap().moving, 20'000 * us);
  EXPECT_EQ(hosts.network.incoming(0).overlap().bytes, 0);
}

TEST(NetworkTest, TheSlowerCardCounts) {
  Hosts hosts({gigabyte, {.bytes_per_second = 0.25e9}}, {});
  hosts[1].receive(0, 5, 20 * megabyte);
  hosts[0].send(1, 5, 20 * megabyte);
  hosts.run();
  EXPECT_GE(hosts[1].ended.at(1005), 80'000 * us);
  EXPECT_LE(hosts[1].ended.at(1005), 80'000 * us + 2 * pause);
}

TEST(NetworkTest, SendersShareWhatTheirReceiverTakes) {
  Hosts hosts({gigabyte, gigabyte, gigabyte}, {});
  for (int sender : {1, 2}) {
    hosts[0].receive(sender, static_cast<std::uint32_t>(sender), 30 * megabyte);
    hosts[static_cast<std::size_t>(sender)].send(0, static_cast<std::uint32_t>(sender), 30 * megabyte);
  }
  hosts.run();
  const std::int64_t first = std::min(hosts[0].ended.at(1001), hosts[0].ended.at(1002));
  const std::int64_t last = std::max(hosts[0].ended.at(1001), hosts[0].ended.at(1002));
  EXPECT_GE(last, 60'000 * us);
  EXPECT_LE(last, 60'000 * us + 4 * pause);
  EXPECT_GE(first, 56'000 * us);  // they take turns by chunks, so both end near the end
}

TEST(NetworkTest, ASwitchThatIsNarrowerThanItsCardsLimitsAll) {
  const auto last_end = [](double switch_bytes_per_second) {
    Hosts hosts({gigabyte, gigabyte, gigabyte, gigabyte}, {.bytes_per_second = switch_bytes_per_second});
    for (int sender : {0, 2}) {
      const int receiver = sender + 1;
      hosts[static_cast<std::size_t>(receiver)].receive(sender, 1, 30 * megabyte);
      hosts[static_cast<std::size_t>(sender)].send(receiver, 1, 30 * megabyte);
    }
    hosts.run();
    return std::max(hosts[1].ended.at(1001), hosts[3].ended.at(1001));
  };
  EXPECT_LE(last_end(0), 30'000 * us + 2 * pause);
  EXPECT_GE(last_end(1e9), 60'000 * us);
  EXPECT_LE(last_end(1e9), 60'000 * us + 4 * pause);
}

TEST(NetworkTest, DirectionsDoNotShareACard) {
  Hosts hosts({gigabyte, gigabyte}, {});
  for (int host : {0, 1}) {
    hosts[static_cast<std::size_t>(host)].receive(1 - host, 1, 30 * megabyte);
    hosts[static_cast<std::size_t>(host)].send(1 - host, 1, 30 * megabyte);
  }
  hosts.run();
  EXPECT_LE(hosts[0].ended.at(1001), 30'000 * us + 4 * pause);
  EXPECT_LE(hosts[1].ended.at(1001), 30'000 * us + 4 * pause);
}

// The transport is the real one: an urgent message passes what it finds on its way between two chunks.
TEST(NetworkTest, AnUrgentMessagePassesALargeOne) {
  Hosts hosts({gigabyte, gigabyte}, {});
  for (std::uint32_t channel : {1U, 2U})
    hosts[1].receive(0, channel, channel == 1 ? 100 * megabyte : megabyte);
  hosts[0].send(1, 1, 100 * megabyte, 5);
  class Later final : public TimedAction {
   public:
    explicit Later(Host& sender) : sender_(sender) {}
    void act(std::uint64_t) override { sender_.send(1, 2, megabyte, 1); }

   private:
    Host& sender_;
  } later(hosts[0]);
  hosts.time.schedule(20'000 * us, later);
  hosts.run();
  EXPECT_EQ(hosts[1].order, std::vector<std::uint64_t>({1002, 1001}));
  EXPECT_LE(hosts[1].ended.at(1002), 20'000 * us + 5 * 1049 * us + 2 * pause);  // 4 MiB were on their way
  EXPECT_GE(hosts[1].ended.at(1001), 101'000 * us);
}

TEST(NetworkTest, AChunkIsSentWhenTheSystemHasTakenIt) {
  const auto sent_at = [](double buffer_bytes) {
    const CardOptions buffered{.bytes_per_second = 1e9, .buffer_bytes = buffer_bytes};
    Hosts hosts({buffered, buffered}, {}, {.chunk_bytes = megabyte});
    hosts[1].receive(0, 5, 8 * megabyte);
    hosts[0].send(1, 5, 8 * megabyte);
    hosts.run();
    // The bytes take their time all the same.
    EXPECT_GE(hosts[1].ended.at(1005), 8'000 * us);
    EXPECT_LE(hosts[1].ended.at(1005), 8'000 * us + 2 * pause);
    return hosts[0].ended.at(5);
  };
  EXPECT_GE(sent_at(0), 8'000 * us);
  EXPECT_LE(sent_at(10e6), pause);  // with the credit, since all find room
  // The last chunk finds room when the fifth one has left, and the thread looks then.
  EXPECT_GE(sent_at(3e6), 5'000 * us);
  EXPECT_LE(sent_at(3e6), 5'000 * us + 2 * pause);
}

// On one core, each of both: the thread of the transport needs 10 ms, then the bytes 20 ms, chunk by chunk.
TEST(NetworkTest, TheTransportsThreadNeedsACore) {
  class Worker final : public Cores::Listener {
   public:
    void work_done(std::uint64_t) override { done_at = time->now(); }
    const VirtualTime* time = nullptr;
    std::int64_t done_at = 0;
  };
  const CardOptions costly{.bytes_per_second = 1e9, .core_seconds_per_byte = 0.5e-9};
  Hosts hosts({costly, costly}, {});
  Worker worker;
  worker.time = &hosts.time;
  hosts[0].cores.run(100'000 * us, worker, 0);
  hosts[1].receive(0, 5, 20 * megabyte);
  hosts[0].send(1, 5, 20 * megabyte);
  hosts.run();
  EXPECT_EQ(worker.done_at, 110'000 * us);
  // With half of the core, the sender's thread needs 1 ns for a byte, as the wire does.
  EXPECT_GE(hosts[1].ended.at(1005), 20'000 * us);
  EXPECT_LE(hosts[1].ended.at(1005), 30'000 * us);
}

TEST(NetworkTest, ATransportLooksInPausesThatGrow) {
  // What comes at the moment of the last event is seen at once; later, at the first look after it.
  EXPECT_EQ(next_look(100 * us, 100 * us), 100 * us);
  EXPECT_EQ(next_look(100 * us, 101 * us), 120 * us);
  EXPECT_EQ(next_look(100 * us, 120 * us), 120 * us);
  EXPECT_EQ(next_look(100 * us, 121 * us), 140 * us);
  for (const std::int64_t time : {2'000 * us, 2'333 * us, 70'000 * us}) {
    const std::int64_t look = next_look(0, time);
    EXPECT_GE(look, time);
    EXPECT_LT(look, time + pause);
    EXPECT_EQ(next_look(0, look), look);
  }
}

}  // namespace
}  // namespace purine::sim
