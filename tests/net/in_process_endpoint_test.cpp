#include "purine/net/in_process_endpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/net/conformance.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks.h"
#include "tests/support/watchdog.h"

namespace purine::net {
namespace {

using namespace std::chrono_literals;
using test::at_ranks;
using test::error_text;

/// Collects completions: their tags in order, and the text of what failed.
class Completions final : public CompletionListener {
 public:
  void completed(std::uint64_t tag, std::exception_ptr error) override {
    const std::lock_guard lock(mutex_);
    tags_.push_back(tag);
    if (error != nullptr) errors_[tag] = error_text([&] { std::rethrow_exception(error); });
    changed_.notify_all();
  }
  std::vector<std::uint64_t> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tags_.size() >= count; });
    return tags_;
  }
  std::map<std::uint64_t, std::string> errors() {
    const std::lock_guard lock(mutex_);
    return errors_;
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return tags_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> tags_;
  std::map<std::uint64_t, std::string> errors_;
};

std::vector<std::byte> filled(std::size_t bytes, int value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

TEST(InProcessEndpointTest, DoesWhatEveryEndpointMust) {
  const Watchdog watchdog;
  constexpr int ranks = 3;
  for (const test::EndpointCheck& check : test::endpoint_checks()) {
    SCOPED_TRACE(check.name);
    InProcessHub hub(ranks, {.shuffle_seed = 1});
    EXPECT_EQ(at_ranks(hub, ranks, check.run), std::vector<std::string>(ranks));
  }
}

TEST(InProcessEndpointTest, KnowsItsRank) {
  InProcessHub hub(3);
  EXPECT_EQ(hub.endpoint(2).rank(), 2);
  EXPECT_EQ(hub.endpoint(2).size(), 3);
}

// Every message of every pair arrives where it belongs, whoever comes first and in whatever order.
TEST(InProcessEndpointTest, CarriesMessagesOfAllPairsChannelsAndVersions) {
  const Watchdog watchdog;
  constexpr int ranks = 4;
  constexpr std::uint32_t channels = 5;
  constexpr std::int64_t versions = 6;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    InProcessOptions options;
    if (seed > 1) options.shuffle_seed = seed;
    InProcessHub hub(ranks, options);
    const auto errors = at_ranks(hub, ranks, [&](Endpoint& endpoint) {
      struct Buffer {
        Message message;
        bool sends = false;
        std::vector<std::byte> bytes;
      };
      const auto content = [](int from, int to, std::uint32_t channel, std::int64_t version) {
        return from * 67 + to * 31 + static_cast<int>(channel) * 7 + static_cast<int>(version);
      };
      std::vector<Buffer> buffers;
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer == endpoint.rank()) continue;
        for (std::uint32_t channel = 0; channel < channels; ++channel) {
          for (std::int64_t version = 0; version < versions; ++version) {
            const Message message{peer, channel, version};
            buffers.push_back(
                {message, true, filled(10 * channel, content(endpoint.rank(), peer, channel, version))});
            buffers.push_back({message, false, filled(10 * channel, 0)});
          }
        }
      }
      if (endpoint.rank() % 2 == 1) std::reverse(buffers.begin(), buffers.end());
      Completions completions;
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        Buffer& buffer = buffers[i];
        if (buffer.sends) {
          endpoint.send(buffer.message, buffer.bytes.data(), buffer.bytes.size(), 0, completions, i);
        } else {
          endpoint.receive(buffer.message, buffer.bytes.data(), buffer.bytes.size(), completions, i);
        }
      }
      std::vector<std::uint64_t> tags = completions.wait_for(buffers.size());
      std::sort(tags.begin(), tags.end());
      std::vector<std::uint64_t> all(buffers.size());
      std::iota(all.begin(), all.end(), 0U);
      EXPECT_EQ(tags, all);
      EXPECT_TRUE(completions.errors().empty());
      for (const Buffer& buffer : buffers) {
        if (buffer.sends) continue;
        const auto& [peer, channel, version] = buffer.message;
        EXPECT_EQ(buffer.bytes, filled(10 * channel, content(peer, endpoint.rank(), channel, version)));
      }
    });
    EXPECT_EQ(errors, std::vector<std::string>(ranks));
  }
}

TEST(InProcessEndpointTest, NothingIsSentBeforeMemoryIsOffered) {
  const Watchdog watchdog;
  Completions sent;
  Completions received;
  const std::vector<std::byte> source = filled(100, 1);
  std::vector<std::byte> first = filled(100, 0);
  InProcessHub hub(2);
  hub.endpoint(0).send({1, 7, 0}, source.data(), 100, 0, sent, 0);
  hub.endpoint(0).send({1, 7, 1}, source.data(), 100, 0, sent, 1);
  hub.endpoint(1).receive({0, 7, 1}, first.data(), 100, received, 5);
  EXPECT_EQ(received.wait_for(1), std::vector<std::uint64_t>{5});
  EXPECT_EQ(sent.wait_for(1), std::vector<std::uint64_t>{1});
  EXPECT_EQ(first, source);
  hub.endpoint(1).receive({0, 7, 0}, first.data(), 100, received, 6);
  EXPECT_EQ(sent.wait_for(2).back(), 0U);
}

// A line of set speed carries one chunk at a time, the most urgent message's.
TEST(InProcessEndpointTest, UrgentMessagesPassLargeOnes) {
  const Watchdog watchdog;
  constexpr std::size_t large = 200'000;  // 20 ms
  const std::vector<std::byte> source = filled(large, 3);
  std::vector<std::vector<std::byte>> targets(4, filled(large, 0));
  Completions sent;
  Completions received;
  InProcessHub hub(2, {.bytes_per_second = 1e7, .chunk_bytes = 1000});
  for (std::uint32_t channel = 0; channel < 4; ++channel) {
    const std::size_t bytes = channel == 0 ? large : 500;
    hub.endpoint(1).receive({0, channel, 0}, targets[channel].data(), bytes, received, channel);
  }
  hub.endpoint(0).send({1, 0, 0}, source.data(), large, 9, sent, 0);
  hub.endpoint(0).send({1, 1, 0}, source.data(), 500, 3, sent, 1);
  hub.endpoint(0).send({1, 2, 0}, source.data(), 500, 2, sent, 2);
  hub.endpoint(0).send({1, 3, 0}, source.data(), 500, 1, sent, 3);
  EXPECT_EQ(received.wait_for(4).back(), 0U);
  sent.wait_for(4);
  EXPECT_EQ(targets[0], source);
}

TEST(InProcessEndpointTest, AMessageOfAnotherSizeIsAnErrorAtBothEnds) {
  const Watchdog watchdog;
  Completions completions;
  std::vector<std::byte> memory = filled(64, 0);
  InProcessHub hub(2);
  hub.endpoint(0).send({1, 3, 0}, memory.data(), 64, 0, completions, 0);
  hub.endpoint(1).receive({0, 3, 0}, memory.data(), 32, completions, 1);
  completions.wait_for(2);
  const std::string text =
      "[network] rank 0 sends 64 bytes to rank 1 on channel 3, version 0, which expects 32";
  EXPECT_EQ(completions.errors(), (std::map<std::uint64_t, std::string>{{0, text}, {1, text}}));
}

TEST(InProcessEndpointTest, AllHearWhatAllSay) {
  const Watchdog watchdog;
  InProcessHub hub(3);
  const auto errors = at_ranks(hub, 3, [](Endpoint& endpoint) {
    for (int i = 0; i < 50; ++i) {
      const auto words = [i](int rank) { return std::to_string(rank) + " says " + std::to_string(i); };
      EXPECT_EQ(endpoint.all_gather(words(endpoint.rank())),
                (std::vector<std::string>{words(0), words(1), words(2)}));
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(InProcessEndpointTest, EndsAreAnnouncedForEachRunByItself) {
  InProcessHub hub(2);
  hub.endpoint(1).announce_end(4, 17);
  hub.endpoint(0).announce_end(5, 20);
  EXPECT_EQ(hub.endpoint(0).announced_ends(4), (std::vector<std::int64_t>{-1, 17}));
  EXPECT_EQ(hub.endpoint(1).announced_ends(5), (std::vector<std::int64_t>{20, -1}));
  EXPECT_EQ(hub.endpoint(1).announced_ends(6), (std::vector<std::int64_t>{-1, -1}));
}

TEST(InProcessEndpointTest, AFailureEndsAllThatIsUnderWayAndAllThatIsBegun) {
  const Watchdog watchdog;
  Completions completions;
  std::vector<std::byte> memory = filled(64, 0);
  InProcessHub hub(3);
  hub.endpoint(0).send({1, 3, 0}, memory.data(), 64, 0, completions, 0);
  hub.endpoint(2).receive({0, 3, 0}, memory.data(), 64, completions, 1);
  std::string gathered;
  std::thread waits([&] { gathered = error_text([&] { hub.endpoint(1).all_gather("here"); }); });
  hub.endpoint(2).fail("it broke");
  hub.endpoint(0).fail("so did this");
  waits.join();
  completions.wait_for(2);
  hub.endpoint(1).receive({0, 3, 0}, memory.data(), 64, completions, 2);
  completions.wait_for(3);
  const std::string text = "[rank 2] it broke";
  EXPECT_EQ(gathered, text);
  EXPECT_EQ(completions.errors(), (std::map<std::uint64_t, std::string>{{0, text}, {1, text}, {2, text}}));
  EXPECT_EQ(error_text([&] { hub.endpoint(0).announced_ends(1); }), text);
  EXPECT_EQ(error_text([&] { hub.endpoint(0).all_gather(""); }), text);
  try {
    hub.endpoint(2).all_gather("");
    ADD_FAILURE() << "no error";
  } catch (const RemoteError& error) {
    EXPECT_EQ(error.rank(), 2);
  }
}

TEST(InProcessEndpointTest, AKilledRankIsMissedAfterTheStallLimit) {
  const Watchdog watchdog;
  Completions own;
  Completions others;
  std::vector<std::byte> memory = filled(64, 0);
  InProcessHub hub(3, {.stall_limit = 50ms});
  hub.endpoint(1).receive({0, 3, 0}, memory.data(), 64, own, 0);
  hub.endpoint(2).receive({1, 3, 0}, memory.data(), 64, others, 1);
  hub.kill(1);
  own.wait_for(1);
  EXPECT_EQ(own.errors()[0], "[rank 1] at this process, was killed");
  hub.endpoint(0).send({1, 3, 0}, memory.data(), 64, 0, others, 2);
  hub.endpoint(1).fail("nobody hears this");
  others.wait_for(2);
  const std::string text = "[rank 1] at this process, silent for longer than 0.05 s";
  EXPECT_EQ(others.errors(), (std::map<std::uint64_t, std::string>{{1, text}, {2, text}}));
  EXPECT_EQ(error_text([&] { hub.endpoint(1).all_gather(""); }), "[rank 1] at this process, was killed");
}

TEST(InProcessEndpointTest, APausedRankIsWaitedFor) {
  const Watchdog watchdog;
  Completions completions;
  const std::vector<std::byte> source = filled(64, 4);
  std::vector<std::byte> target = filled(64, 0);
  InProcessHub hub(2);
  hub.pause(1);
  hub.endpoint(1).receive({0, 3, 0}, target.data(), 64, completions, 0);
  hub.endpoint(0).send({1, 3, 0}, source.data(), 64, 0, completions, 1);
  hub.endpoint(1).announce_end(1, 5);
  EXPECT_EQ(hub.endpoint(0).announced_ends(1)[1], -1);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(completions.count(), 0U);
  hub.resume(1);
  completions.wait_for(2);
  EXPECT_TRUE(completions.errors().empty());
  EXPECT_EQ(target, source);
  EXPECT_EQ(hub.endpoint(0).announced_ends(1)[1], 5);
}

// What a paused rank says of a failure is heard when it is resumed.
TEST(InProcessEndpointTest, APausedRankFailsWhenItIsResumed) {
  const Watchdog watchdog;
  InProcessHub hub(2);
  hub.pause(1);
  hub.endpoint(1).fail("it broke");
  EXPECT_NO_THROW(hub.endpoint(0).announced_ends(1));
  hub.resume(1);
  EXPECT_EQ(error_text([&] { hub.endpoint(0).announced_ends(1); }), "[rank 1] it broke");
}

}  // namespace
}  // namespace purine::net
