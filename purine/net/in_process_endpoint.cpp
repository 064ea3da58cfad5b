#include "purine/net/in_process_endpoint.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "purine/core/random.h"

namespace purine::net {
namespace {

constexpr const char* host_name = "this process";

std::string at_host(const std::string& what) {
  return std::string("at ") + host_name + ", " + what;
}

using Time = std::chrono::steady_clock::time_point;

std::string seconds_text(std::chrono::nanoseconds time) {
  std::string text = std::to_string(std::chrono::duration<double>(time).count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

// Which message: both sides name it so.
struct Key {
  int from = 0;
  int to = 0;
  std::uint32_t channel = 0;
  std::int64_t version = 0;
  auto operator<=>(const Key& other) const = default;
};

// A send or a receive that a rank has begun.
struct Side {
  std::byte* memory = nullptr;  // of a send it is only read
  std::size_t bytes = 0;
  double urgency = 0;
  CompletionListener* listener = nullptr;
  std::uint64_t tag = 0;

  void complete(const std::exception_ptr& error) const { listener->completed(tag, error); }
};

// A message whose sender and receiver are both ready.
struct Delivery {
  Key key;
  Side send;
  Side receive;
  std::size_t sent = 0;
  Time due{};  // once all is sent: when it arrives
  // Those of the sender and the receiver that were told of its begin.
  std::shared_ptr<TransferObserver> send_observer = nullptr;
  std::shared_ptr<TransferObserver> receive_observer = nullptr;
  bool begun = false;

  void tell_end() const {
    if (send_observer) send_observer->message_ends(true, send.bytes);
    if (receive_observer) receive_observer->message_ends(false, send.bytes);
  }
};

struct Completion {
  Side side;
  std::exception_ptr error;
};

}  // namespace

// All completions are told by the hub's thread, with no lock held.
class InProcessHub::Implementation {
 public:
  Implementation(int ranks, InProcessOptions options)
      : options_(options), random_(options.shuffle_seed.value_or(0), 0, 0), ranks_(ranks) {
    PURINE_CHECK(ranks > 0 && options.chunk_bytes > 0);
    for (int rank = 0; rank < ranks; ++rank) {
      RankState& state = ranks_[static_cast<std::size_t>(rank)];
      state.endpoint = std::make_unique<InProcessEndpoint>(*this, rank);
    }
    thread_ = std::thread([this] { work(); });
  }

  ~Implementation() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Endpoint& endpoint(int rank) { return *ranks_.at(static_cast<std::size_t>(rank)).endpoint; }

  void kill(int rank) {
    const std::lock_guard lock(mutex_);
    RankState& state = state_of(rank);
    if (!state.silent_since) state.silent_since = std::chrono::steady_clock::now();
    state.killed =
        std::make_exception_ptr(RemoteError(rank, at_host("was killed"), {}, RemoteError::Rank::is_gone));
    drop_sides(rank);
    changed_.notify_all();
  }

  void pause(int rank) {
    const std::lock_guard lock(mutex_);
    RankState& state = state_of(rank);
    if (!state.silent_since) state.silent_since = std::chrono::steady_clock::now();
    changed_.notify_all();
  }

  void resume(int rank) {
    const std::lock_guard lock(mutex_);
    RankState& state = state_of(rank);
    if (state.killed != nullptr) return;
    state.silent_since.reset();
    if (state.unsaid_cause) fail_all(rank, *state.unsaid_cause);
    changed_.notify_all();
  }

 private:
  class InProcessEndpoint final : public Endpoint {
   public:
    InProcessEndpoint(Implementation& hub, int rank) : hub_(hub), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(hub_.ranks_.size()); }
    std::string host(int) const override { return host_name; }
    void receive(const Message& message, std::byte* memory, std::size_t bytes, CompletionListener& listener,
                 std::uint64_t tag) override {
      hub_.begin(rank_, {message.peer, rank_, message.channel, message.version},
                 {memory, bytes, 0, &listener, tag}, false);
    }
    void send(const Message& message, const std::byte* memory, std::size_t bytes, double urgency,
              CompletionListener& listener, std::uint64_t tag) override {
      hub_.begin(rank_, {rank_, message.peer, message.channel, message.version},
                 {const_cast<std::byte*>(memory), bytes, urgency, &listener, tag}, true);
    }
    std::vector<std::string> all_gather(std::string_view words) override {
      return hub_.all_gather(rank_, words);
    }
    void announce_end(std::int64_t run, std::int64_t end) override { hub_.announce_end(rank_, run, end); }
    std::vector<std::int64_t> announced_ends(std::int64_t run) const override {
      return hub_.announced_ends(rank_, run);
    }
    void fail(std::string_view cause) override { hub_.fail(rank_, cause); }
    void observe(std::shared_ptr<TransferObserver> observer) override {
      hub_.observe(rank_, std::move(observer));
    }
    void fit_to(double) override {}  // a chunk at a time is on the line

   private:
    Implementation& hub_;
    const int rank_;
  };

  struct RankState {
    std::unique_ptr<InProcessEndpoint> endpoint;
    std::optional<Time> silent_since;
    std::exception_ptr killed;
    std::optional<std::string> unsaid_cause;  // of a failure while it was paused
    std::vector<Delivery> line;               // what is on its way out
    Time line_free{};
    std::size_t gathers = 0;                    // calls of all_gather
    std::map<std::int64_t, std::int64_t> ends;  // by run
    std::shared_ptr<TransferObserver> observer;
  };
  struct Gather {
    std::vector<std::string> words;
    std::vector<bool> said;
    int taken = 0;
  };

  RankState& state_of(int rank) { return ranks_.at(static_cast<std::size_t>(rank)); }
  bool silent(int rank) { return state_of(rank).silent_since.has_value(); }
  std::exception_ptr failure_of(int rank) {
    return state_of(rank).killed != nullptr ? state_of(rank).killed : failure_;
  }
  void rethrow_failure(int rank) {
    if (const std::exception_ptr failure = failure_of(rank)) std::rethrow_exception(failure);
  }

  void begin(int rank, const Key& key, const Side& side, bool sends) {
    const std::lock_guard lock(mutex_);
    PURINE_CHECK(key.from != key.to && key.from >= 0 && key.to >= 0 && key.to < endpoint(rank).size());
    if (const std::exception_ptr failure = failure_of(rank)) {
      completions_.push_back({side, failure});
      changed_.notify_all();
      return;
    }
    std::deque<Side>& waiting = (sends ? receives_ : sends_)[key];
    if (waiting.empty()) {
      (sends ? sends_ : receives_)[key].push_back(side);
      return;
    }
    const Side other = waiting.front();
    waiting.pop_front();
    if (waiting.empty()) (sends ? receives_ : sends_).erase(key);
    if (side.bytes != other.bytes) {
      const Side& send = sends ? side : other;
      const Side& receive = sends ? other : side;
      const auto error = std::make_exception_ptr(
          Error("network", "rank " + std::to_string(key.from) + " sends " + std::to_string(send.bytes) +
                               " bytes to rank " + std::to_string(key.to) + " on channel " +
                               std::to_string(key.channel) + ", version " + std::to_string(key.version) +
                               ", which expects " + std::to_string(receive.bytes)));
      completions_.push_back({send, error});
      completions_.push_back({receive, error});
    } else {
      state_of(key.from).line.push_back({key, sends ? side : other, sends ? other : side});
    }
    changed_.notify_all();
  }

  std::vector<std::string> all_gather(int rank, std::string_view words) {
    std::unique_lock lock(mutex_);
    rethrow_failure(rank);
    const std::size_t number = state_of(rank).gathers++;
    Gather& gather = gathers_[number];
    gather.words.resize(ranks_.size());
    gather.said.resize(ranks_.size(), false);
    gather.words[static_cast<std::size_t>(rank)] = words;
    gather.said[static_cast<std::size_t>(rank)] = true;
    changed_.notify_all();
    changed_.wait(lock, [&] {
      if (failure_of(rank) != nullptr) return true;
      for (int other = 0; other < static_cast<int>(ranks_.size()); ++other) {
        if (!gather.said[static_cast<std::size_t>(other)] || silent(other)) return false;
      }
      return true;
    });
    rethrow_failure(rank);
    std::vector<std::string> result = gather.words;
    if (++gather.taken == static_cast<int>(ranks_.size())) gathers_.erase(number);
    return result;
  }

  void announce_end(int rank, std::int64_t run, std::int64_t end) {
    const std::lock_guard lock(mutex_);
    state_of(rank).ends[run] = end;
  }

  std::vector<std::int64_t> announced_ends(int rank, std::int64_t run) {
    const std::lock_guard lock(mutex_);
    rethrow_failure(rank);
    std::vector<std::int64_t> ends;
    for (const RankState& state : ranks_) {
      const auto found = state.ends.find(run);
      const bool heard = found != state.ends.end() && (!state.silent_since || &state == &state_of(rank));
      ends.push_back(heard ? found->second : -1);
    }
    return ends;
  }

  void observe(int rank, std::shared_ptr<TransferObserver> observer) {
    const std::lock_guard lock(mutex_);
    state_of(rank).observer = std::move(observer);
  }

  void fail(int rank, std::string_view cause) {
    const std::lock_guard lock(mutex_);
    if (silent(rank)) {
      state_of(rank).unsaid_cause = cause;
    } else {
      fail_all(rank, cause);
    }
  }

  // Under mutex_: only the first cause counts.
  void fail_all(int rank, std::string_view cause, RemoteError::Rank state = RemoteError::Rank::speaks) {
    if (failure_ != nullptr) return;
    failure_ = std::make_exception_ptr(RemoteError(rank, cause, {}, state));
    for (int any = 0; any < static_cast<int>(ranks_.size()); ++any) drop_sides(any);
    changed_.notify_all();
  }

  // Under mutex_: all that a rank has under way fails; its peers wait for it again.
  void drop_sides(int rank) {
    const std::exception_ptr failure = failure_of(rank);
    const auto drop_transfers = [&](std::vector<Delivery>& transfers) {
      for (const Delivery& transfer : transfers) {
        if (transfer.key.from != rank && transfer.key.to != rank) continue;
        transfer.tell_end();
        sends_[transfer.key].push_front(transfer.send);
        receives_[transfer.key].push_front(transfer.receive);
      }
      std::erase_if(transfers, [&](const Delivery& transfer) {
        return transfer.key.from == rank || transfer.key.to == rank;
      });
    };
    for (RankState& state : ranks_) drop_transfers(state.line);
    drop_transfers(arriving_);
    const auto drop_waiting = [&](std::map<Key, std::deque<Side>>& waiting, int Key::*its_rank) {
      for (auto& [key, sides] : waiting) {
        if (key.*its_rank != rank) continue;
        for (const Side& side : sides) completions_.push_back({side, failure});
      }
      std::erase_if(waiting, [&](const auto& entry) { return entry.first.*its_rank == rank; });
    };
    drop_waiting(sends_, &Key::from);
    drop_waiting(receives_, &Key::to);
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      const Time now = std::chrono::steady_clock::now();
      Time next = now + std::chrono::hours(1);
      for (RankState& state : ranks_) move(state, now, next);
      find_stalls(now, next);
      const std::vector<Delivery> arrived = take_arrived(now, next);
      const std::vector<Completion> completions = std::exchange(completions_, {});
      if (arrived.empty() && completions.empty()) {
        changed_.wait_until(lock, next);
        continue;
      }
      lock.unlock();
      for (const Delivery& transfer : arrived) {
        if (transfer.send.bytes > 0) {
          std::memcpy(transfer.receive.memory, transfer.send.memory, transfer.send.bytes);
        }
        transfer.tell_end();
        transfer.receive.complete(nullptr);
        transfer.send.complete(nullptr);
      }
      for (const Completion& completion : completions) completion.side.complete(completion.error);
      lock.lock();
    }
  }

  // Puts on a rank's line what it has time for.
  void move(RankState& state, Time now, Time& next) {
    while (!state.line.empty() && state.line_free <= now) {
      auto best = state.line.end();
      for (auto transfer = state.line.begin(); transfer != state.line.end(); ++transfer) {
        if (silent(transfer->key.from) || silent(transfer->key.to)) continue;
        if (best == state.line.end() || transfer->send.urgency < best->send.urgency) best = transfer;
      }
      if (best == state.line.end()) return;
      if (!best->begun) tell_begin(*best);
      Time end = now;
      const std::size_t left = best->send.bytes - best->sent;
      std::size_t chunk = left;
      if (options_.bytes_per_second > 0) {
        chunk = std::min(left, options_.chunk_bytes);
        const std::chrono::duration<double> time(static_cast<double>(chunk) / options_.bytes_per_second);
        end = std::max(state.line_free, now - std::chrono::milliseconds(1)) +
              std::chrono::duration_cast<std::chrono::nanoseconds>(time);
        state.line_free = end;
      }
      best->sent += chunk;
      if (best->sent < best->send.bytes) continue;
      best->due = end + options_.latency;
      if (options_.shuffle_seed) best->due += std::chrono::microseconds(random_.below(drawn_++, 200));
      arriving_.push_back(*best);
      state.line.erase(best);
    }
    if (!state.line.empty()) next = std::min(next, state.line_free);
  }

  void tell_begin(Delivery& transfer) {
    transfer.begun = true;
    transfer.send_observer = state_of(transfer.key.from).observer;
    transfer.receive_observer = state_of(transfer.key.to).observer;
    if (transfer.send_observer) transfer.send_observer->message_begins(true);
    if (transfer.receive_observer) transfer.receive_observer->message_begins(false);
  }

  std::vector<Delivery> take_arrived(Time now, Time& next) {
    const auto arrives = [&](const Delivery& transfer) {
      return transfer.due <= now && !silent(transfer.key.from) && !silent(transfer.key.to);
    };
    std::vector<Delivery> arrived;
    std::copy_if(arriving_.begin(), arriving_.end(), std::back_inserter(arrived), arrives);
    std::erase_if(arriving_, arrives);
    std::stable_sort(arrived.begin(), arrived.end(),
                     [](const Delivery& a, const Delivery& b) { return a.due < b.due; });
    for (const Delivery& transfer : arriving_) {
      if (transfer.due > now) next = std::min(next, transfer.due);
    }
    return arrived;
  }

  void find_stalls(Time now, Time& next) {
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      const std::optional<Time> since = state_of(rank).silent_since;
      if (!since || failure_ != nullptr) continue;
      if (now - *since >= options_.stall_limit) {
        fail_all(rank, at_host("silent for longer than " + seconds_text(options_.stall_limit)),
                 RemoteError::Rank::is_gone);
      } else {
        next = std::min(next, *since + options_.stall_limit);
      }
    }
  }

  const InProcessOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Random random_;
  std::uint64_t drawn_ = 0;
  std::vector<RankState> ranks_;
  std::map<Key, std::deque<Side>> sends_;     // that wait for their receive
  std::map<Key, std::deque<Side>> receives_;  // that wait for their send
  std::vector<Delivery> arriving_;            // all sent
  std::vector<Completion> completions_;       // that the thread tells next
  std::map<std::size_t, Gather> gathers_;
  std::exception_ptr failure_;
  bool ended_ = false;
  std::thread thread_;
};

InProcessHub::InProcessHub(int ranks, InProcessOptions options)
    : implementation_(std::make_unique<Implementation>(ranks, options)) {}

InProcessHub::~InProcessHub() = default;

Endpoint& InProcessHub::endpoint(int rank) {
  return implementation_->endpoint(rank);
}

void InProcessHub::kill(int rank) {
  implementation_->kill(rank);
}

void InProcessHub::pause(int rank) {
  implementation_->pause(rank);
}

void InProcessHub::resume(int rank) {
  implementation_->resume(rank);
}

}  // namespace purine::net
