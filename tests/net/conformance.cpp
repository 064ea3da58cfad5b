#include "tests/net/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include "purine/net/start_up.h"
#include "purine/net/transport/waiter.h"

namespace purine::test {
namespace {

using Bytes = std::vector<std::byte>;

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

/// Remembers what each tag completed with.
class Results final : public CompletionListener {
 public:
  void completed(std::uint64_t tag, std::exception_ptr error) override {
    const std::lock_guard lock(mutex_);
    expect_once_ = expect_once_ && errors_.emplace(tag, error).second;
    changed_.notify_all();
  }
  /// Waits until so many have completed, each once.
  void wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return errors_.size() >= count; });
    expect(expect_once_, "a listener was told twice");
  }
  /// The error's text; empty for none.
  std::string error(std::uint64_t tag) {
    const std::lock_guard lock(mutex_);
    return text(errors_.at(tag));
  }
  bool is_remote(std::uint64_t tag, int rank) {
    const std::lock_guard lock(mutex_);
    try {
      std::rethrow_exception(errors_.at(tag));
    } catch (const RemoteError& error) {
      return error.rank() == rank;
    } catch (const Error&) {
      return false;
    }
  }

 private:
  static std::string text(const std::exception_ptr& error) {
    if (!error) return "";
    try {
      std::rethrow_exception(error);
    } catch (const Error& caught) {
      return caught.what();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, std::exception_ptr> errors_;
  bool expect_once_ = true;
};

/// Bytes that no other message has.
Bytes content(std::uint64_t message, std::size_t bytes) {
  std::mt19937_64 random(message);
  Bytes values(bytes);
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t eight = random();
    for (std::size_t j = i; j < std::min(bytes, i + 8); ++j) {
      values[j] = static_cast<std::byte>(eight >> (8 * (j - i)));
    }
  }
  return values;
}

/// Messages between random ranks, of many sizes, in another order at each rank; several are versions of one
/// channel.
void random_traffic(Endpoint& endpoint) {
  struct Planned {
    int from, to;
    std::uint32_t channel;
    std::int64_t version;
    std::size_t bytes;
  };
  constexpr std::array<std::size_t, 10> sizes{0,     1,     7,       4096,      65535,
                                              65536, 65537, 200'000, 1'048'576, 3'000'001};
  std::mt19937 random(17);
  std::vector<Planned> plan;
  for (std::uint32_t i = 0; i < 240; ++i) {
    const int from = static_cast<int>(random() % static_cast<unsigned>(endpoint.size()));
    const int step = 1 + static_cast<int>(random() % static_cast<unsigned>(endpoint.size() - 1));
    plan.push_back({from, (from + step) % endpoint.size(), i / 4, i % 4, sizes[random() % sizes.size()]});
  }

  struct Mine {
    std::size_t index;
    Bytes bytes;
  };
  std::vector<Mine> mine;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (plan[i].from == endpoint.rank()) mine.push_back({i, content(i, plan[i].bytes)});
    if (plan[i].to == endpoint.rank()) mine.push_back({i, Bytes(plan[i].bytes)});
  }
  std::mt19937 order(static_cast<unsigned>(endpoint.rank()));
  std::shuffle(mine.begin(), mine.end(), order);
  Results results;
  for (Mine& one : mine) {
    const Planned& planned = plan[one.index];
    if (planned.from == endpoint.rank()) {
      endpoint.send({planned.to, planned.channel, planned.version}, one.bytes.data(), one.bytes.size(),
                    static_cast<double>(order() % 5), results, one.index);
    } else {
      endpoint.receive({planned.from, planned.channel, planned.version}, one.bytes.data(), one.bytes.size(),
                       results, one.index);
    }
  }
  results.wait(mine.size());
  for (const Mine& one : mine) {
    expect(results.error(one.index).empty(), results.error(one.index));
    expect(one.bytes == content(one.index, plan[one.index].bytes),
           fmt::format("message {} of {} bytes has other contents", one.index, plan[one.index].bytes));
  }
}

/// A number that goes round the ring of ranks, and grows by one at each: what a rank receives it passes on
/// from the call that says that it came.
class Relay final : public CompletionListener {
 public:
  explicit Relay(Endpoint& endpoint) : endpoint_(endpoint) {}

  void run() {
    receive(0);
    if (endpoint_.rank() == 0) send(0, 0);
    waiter_.wait(2 * rounds);
    for (std::int64_t round = 0; round < rounds; ++round) {
      const int before = endpoint_.rank() == 0 ? endpoint_.size() - 1 : endpoint_.rank() - 1;
      const std::int64_t value = received_[static_cast<std::size_t>(round)];
      expect(value == round * endpoint_.size() + before, fmt::format("round {} brought {}", round, value));
    }
  }

  /// The tag is the round, or -1 - round for a message that was sent.
  void completed(std::uint64_t tag, std::exception_ptr error) override {
    const auto round = static_cast<std::int64_t>(tag);
    if (round >= 0 && !error) {
      if (round + 1 < rounds) receive(round + 1);
      const std::int64_t next = endpoint_.rank() == 0 ? round + 1 : round;
      if (next < rounds) send(next, received_[static_cast<std::size_t>(round)] + 1);
    }
    waiter_.completed(tag, error);
  }

 private:
  static constexpr std::int64_t rounds = 300;
  static constexpr std::uint32_t channel = 1000;

  int rank(int step) const { return (endpoint_.rank() + step + endpoint_.size()) % endpoint_.size(); }
  void receive(std::int64_t round) {
    endpoint_.receive({rank(-1), channel, round},
                      reinterpret_cast<std::byte*>(&received_[static_cast<std::size_t>(round)]),
                      sizeof(std::int64_t), *this, static_cast<std::uint64_t>(round));
  }
  void send(std::int64_t round, std::int64_t value) {
    std::int64_t& sent = sent_[static_cast<std::size_t>(round)];
    sent = value;
    endpoint_.send({rank(1), channel, round}, reinterpret_cast<const std::byte*>(&sent), sizeof(sent), 0,
                   *this, static_cast<std::uint64_t>(-1 - round));
  }

  Endpoint& endpoint_;
  net::Waiter waiter_;
  std::array<std::int64_t, rounds> sent_{};
  std::array<std::int64_t, rounds> received_{};
};

void begin_from_listener(Endpoint& endpoint) {
  Relay(endpoint).run();
}

/// Words of any size from each rank, and every rank has all of them.
void gather(Endpoint& endpoint) {
  const auto words_of = [](int rank, int call) {
    const std::size_t bytes = call == 2 ? 2'500'000 + rank : static_cast<std::size_t>((rank * 7 + call) % 5);
    return std::string(bytes, static_cast<char>('a' + (rank + call) % 26));
  };
  for (int call = 0; call < 12; ++call) {
    const std::vector<std::string> all = endpoint.all_gather(words_of(endpoint.rank(), call));
    expect(all.size() == static_cast<std::size_t>(endpoint.size()), "as many words as ranks");
    for (int rank = 0; rank < endpoint.size(); ++rank) {
      expect(all[static_cast<std::size_t>(rank)] == words_of(rank, call),
             fmt::format("call {} has other words of rank {}", call, rank));
    }
  }
}

void announce(Endpoint& endpoint) {
  const std::vector<std::int64_t> nothing(static_cast<std::size_t>(endpoint.size()), -1);
  expect(endpoint.announced_ends(77) == nothing, "nothing is announced yet");
  std::vector<std::int64_t> all;
  for (int rank = 0; rank < endpoint.size(); ++rank) all.push_back(100 * rank);
  endpoint.announce_end(7, 100 * endpoint.rank());
  expect(endpoint.announced_ends(7)[static_cast<std::size_t>(endpoint.rank())] == 100 * endpoint.rank(),
         "a rank knows its own end at once");
  while (endpoint.announced_ends(7) != all) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  expect(endpoint.announced_ends(77) == nothing, "another run is not concerned");
}

/// The links are measured with messages of the endpoint itself, which leave nothing behind.
void links(Endpoint& endpoint) {
  for (int call = 0; call < 2; ++call) {
    const std::vector<net::Link> measured = net::measure_links(endpoint);
    expect(measured.size() == static_cast<std::size_t>(endpoint.size()), "as many links as ranks");
    std::string text;
    for (const net::Link& link : measured) {
      expect(link.bytes_per_second > 0 && link.latency > 0, "a link carries something, in some time");
      text += fmt::format("{} {} ", link.bytes_per_second, link.latency);
    }
    for (const std::string& other : endpoint.all_gather(text))
      expect(other == text, "ranks know other figures");
  }
}

/// Whatever the endpoints are fitted to, large messages arrive as they were sent.
void fit(Endpoint& endpoint) {
  constexpr std::uint32_t channel = 2500;
  const int next = (endpoint.rank() + 1) % endpoint.size();
  const int previous = (endpoint.rank() + endpoint.size() - 1) % endpoint.size();
  std::int64_t version = 0;
  for (const double bytes_per_second : {1e3, 1e10, 1e8}) {
    endpoint.fit_to(bytes_per_second);
    const auto message_of = [&](int rank) {
      return content(static_cast<std::uint64_t>(100 * version + rank), 2'500'001);
    };
    const Bytes sent = message_of(endpoint.rank());
    Bytes received(sent.size());
    Results results;
    endpoint.receive({previous, channel, version}, received.data(), received.size(), results, 0);
    endpoint.send({next, channel, version}, sent.data(), sent.size(), 0, results, 1);
    results.wait(2);
    expect(results.error(0).empty() && results.error(1).empty(), results.error(0) + results.error(1));
    expect(received == message_of(previous), fmt::format("message {} is another one", version));
    ++version;
    endpoint.all_gather("");
  }
}

/// A message of another size than the memory is an error at both ends, and no more than that.
void other_size(Endpoint& endpoint) {
  constexpr std::uint32_t channel = 2000;
  Bytes memory(3'000'000);
  Results results;
  if (endpoint.rank() == 0) {
    endpoint.send({1, channel, 0}, memory.data(), 12, 0, results, 0);
    endpoint.send({1, channel, 1}, memory.data(), 2'999'999, 0, results, 1);
    endpoint.send({1, channel, 2}, memory.data(), 12, 0, results, 2);
  } else if (endpoint.rank() == 1) {
    endpoint.receive({0, channel, 0}, memory.data(), 16, results, 0);
    endpoint.receive({0, channel, 1}, memory.data(), 1, results, 1);
    endpoint.receive({0, channel, 2}, memory.data(), 12, results, 2);
  }
  if (endpoint.rank() <= 1) {
    results.wait(3);
    for (const auto& [tag, sent, offered] : {std::tuple{0, "12", "16"}, {1, "2999999", "1"}}) {
      const std::string error = results.error(static_cast<std::uint64_t>(tag));
      expect(error.find(sent) != std::string::npos && error.find(offered) != std::string::npos &&
                 error.find("channel 2000") != std::string::npos,
             "the error does not name the channel and both sizes: " + error);
      expect(!results.is_remote(static_cast<std::uint64_t>(tag), 0), "the run has failed");
    }
    expect(results.error(2).empty(), results.error(2));
  }
  endpoint.all_gather("");
}

/// What one rank says of its failure comes out of everything that is under way or begun later.
void fail(Endpoint& endpoint) {
  constexpr std::uint32_t channel = 3000;
  const int next = (endpoint.rank() + 1) % endpoint.size();
  const int previous = (endpoint.rank() + endpoint.size() - 1) % endpoint.size();
  Bytes sent(5'000'000);
  Bytes received(5'000'000);
  Results results;
  endpoint.receive({previous, channel, 1}, received.data(), received.size(), results, 0);  // is never sent
  endpoint.send({next, channel, 2}, sent.data(), sent.size(), 0, results, 1);              // is never offered
  // Rank 1 waits until all have come so far.
  Results ready;
  std::array<std::byte, 1> token{};
  if (endpoint.rank() == 1) {
    for (int rank = 0; rank < endpoint.size(); ++rank) {
      const auto tag = static_cast<std::uint64_t>(rank);
      if (rank != 1) endpoint.receive({rank, channel, 4}, token.data(), token.size(), ready, tag);
    }
    ready.wait(static_cast<std::size_t>(endpoint.size() - 1));
    endpoint.fail("the disk is full");
    endpoint.fail("a second cause");
  } else {
    endpoint.send({1, channel, 4}, token.data(), token.size(), 0, ready, 0);
    ready.wait(1);
  }
  results.wait(2);
  endpoint.receive({previous, channel, 3}, received.data(), received.size(), results, 2);
  endpoint.send({next, channel, 3}, sent.data(), sent.size(), 0, results, 3);
  results.wait(4);
  const std::string expected = "[rank 1] the disk is full";
  for (std::uint64_t tag = 0; tag < 4; ++tag) {
    expect(results.error(tag) == expected, "the error is: " + results.error(tag));
    expect(results.is_remote(tag, 1), "the error is of another kind");
  }
  const auto throws = [&](const auto& call) {
    try {
      call();
    } catch (const RemoteError& error) {
      return error.what() == expected;
    }
    return false;
  };
  expect(throws([&] { endpoint.all_gather(""); }), "all_gather goes on");
  expect(throws([&] { endpoint.announced_ends(7); }), "announced_ends goes on");
}

class Movements final : public TransferObserver {
 public:
  void message_begins(bool sends) override {
    const std::lock_guard lock(mutex_);
    ++begun_[sends];
  }
  void message_ends(bool sends, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    expect_begun_ = expect_begun_ && --begun_[sends] >= 0;
    ++ended_[{sends, bytes}];
  }
  /// True if nothing is under way that had begun.
  bool all_ended() {
    const std::lock_guard lock(mutex_);
    return expect_begun_ && begun_[false] == 0 && begun_[true] == 0;
  }
  int ended(bool sends, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    return ended_[{sends, bytes}];
  }

 private:
  std::mutex mutex_;
  std::map<bool, int> begun_;
  std::map<std::pair<bool, std::size_t>, int> ended_;
  bool expect_begun_ = true;
};

void observe(Endpoint& endpoint) {
  constexpr std::uint32_t channel = 4000;
  const int next = (endpoint.rank() + 1) % endpoint.size();
  const int previous = (endpoint.rank() + endpoint.size() - 1) % endpoint.size();
  const Bytes sent(3'000'001);
  Bytes received(sent.size());
  const auto exchange = [&](std::int64_t version, std::size_t bytes) {
    Results results;
    endpoint.receive({previous, channel, version}, received.data(), bytes, results, 0);
    endpoint.send({next, channel, version}, sent.data(), bytes, 0, results, 1);
    results.wait(2);
  };
  const auto movements = std::make_shared<Movements>();
  exchange(0, 1001);
  endpoint.observe(movements);
  endpoint.all_gather("all observe");
  exchange(1, sent.size());
  exchange(2, 0);
  exchange(3, 1003);
  endpoint.all_gather("all have ended");
  endpoint.observe(nullptr);
  endpoint.all_gather("nobody observes");
  exchange(4, 1004);
  for (const bool sends : {false, true}) {
    for (const std::size_t bytes : {sent.size(), std::size_t{0}, std::size_t{1003}}) {
      expect(movements->ended(sends, bytes) == 1, fmt::format("{} bytes were not told of once", bytes));
    }
    for (const std::size_t bytes : {1001, 1004}) {
      expect(movements->ended(sends, bytes) == 0, fmt::format("{} bytes were told of unasked", bytes));
    }
  }
  expect(movements->all_ended(), "what begins does not end");
}

}  // namespace

const std::vector<EndpointCheck>& endpoint_checks() {
  static const std::vector<EndpointCheck> checks{
      {"random_traffic", random_traffic},
      {"begin_from_listener", begin_from_listener},
      {"gather", gather},
      {"announce", announce},
      {"links", links},
      {"fit", fit},
      {"other_size", other_size},
      {"observe", observe},
      {"fail", fail},
  };
  return checks;
}

}  // namespace purine::test
