#include "purine/net/clock_offset.h"

#include <array>
#include <cstddef>
#include <exception>
#include <limits>
#include <span>
#include <vector>

#include "purine/net/transport/waiter.h"

namespace purine::net {
namespace {

/// Nothing else uses this channel; see also start_up.cpp and mpi_endpoint.cpp.
constexpr std::uint32_t channel = std::numeric_limits<std::uint32_t>::max() - 2;
constexpr std::int64_t questions = 40;

std::span<std::byte> bytes_of(std::int64_t& number) {
  return std::as_writable_bytes(std::span(&number, 1));
}

/// Rank 0: answers each question as it comes, on the endpoint's own thread.
class Answers final : public CompletionListener {
 public:
  Answers(Endpoint& endpoint, const Clock& clock) : endpoint_(endpoint), clock_(clock) {
    const auto count = static_cast<std::size_t>(questions) * static_cast<std::size_t>(endpoint.size());
    asked_.resize(count);
    times_.resize(count);
  }

  /// Before any rank asks: all memory is there for what comes.
  void offer() {
    for (int peer = 1; peer < endpoint_.size(); ++peer) {
      for (std::int64_t i = 0; i < questions; ++i) {
        const std::size_t index = index_of(peer, i);
        endpoint_.receive({peer, channel, 2 * i}, &asked_[index], 1, *this, index);
      }
    }
  }

  /// Until all that was offered has come and is answered, or has failed.
  void wait_for_offers() {
    const int count = static_cast<int>(questions) * (endpoint_.size() - 1);
    wait_all({{&arrivals_, count}, {&sends_, count}});
  }

  void completed(std::uint64_t tag, std::exception_ptr error) override {
    const auto index = static_cast<std::size_t>(tag);
    times_[index] = clock_.now();
    if (error) {
      sends_.completed(0, error);
    } else {
      const std::int64_t question = static_cast<std::int64_t>(index) % questions;
      const auto peer = static_cast<int>(static_cast<std::int64_t>(index) / questions);
      const std::span<std::byte> time = bytes_of(times_[index]);
      endpoint_.send({peer, channel, 2 * question + 1}, time.data(), time.size(), 0, sends_, 0);
    }
    arrivals_.completed(tag, error);
  }

 private:
  static std::size_t index_of(int peer, std::int64_t question) {
    return static_cast<std::size_t>(peer * questions + question);
  }

  Endpoint& endpoint_;
  const Clock& clock_;
  std::vector<std::byte> asked_;
  std::vector<std::int64_t> times_;
  Waiter arrivals_, sends_;
};

/// Another rank: asks, one question after the other.
class Questions final : public CompletionListener {
 public:
  Questions(Endpoint& endpoint, const Clock& clock) : endpoint_(endpoint), clock_(clock) {}

  void offer() {
    for (std::int64_t i = 0; i < questions; ++i) {
      const std::span<std::byte> time = bytes_of(theirs_[static_cast<std::size_t>(i)]);
      endpoint_.receive({0, channel, 2 * i + 1}, time.data(), time.size(), *this,
                        static_cast<std::uint64_t>(i));
    }
  }

  void wait_for_offers() { answers_.wait(static_cast<int>(questions)); }

  ClockOffset ask() {
    ClockOffset best{0, 0, std::numeric_limits<std::int64_t>::max()};
    std::exception_ptr error;
    for (std::size_t i = 0; i < theirs_.size(); ++i) {
      const std::int64_t begin = clock_.now();
      const Message message{0, channel, 2 * static_cast<std::int64_t>(i)};
      endpoint_.send(message, &byte_, 1, 0, sends_, 0);
      try {
        answers_.wait(1);
      } catch (...) {
        error = std::current_exception();  // all others end with it as well
        continue;
      }
      const std::int64_t half = (came_[i] - begin) / 2;
      if (half < best.error) best = {begin + half, theirs_[i] - (begin + half), half + 1};
    }
    sends_.wait(static_cast<int>(questions));
    if (error) std::rethrow_exception(error);
    return best;
  }

  void completed(std::uint64_t tag, std::exception_ptr error) override {
    came_[static_cast<std::size_t>(tag)] = clock_.now();
    answers_.completed(tag, error);
  }

 private:
  Endpoint& endpoint_;
  const Clock& clock_;
  std::array<std::int64_t, questions> theirs_{};
  std::array<std::int64_t, questions> came_{};
  std::byte byte_{};
  Waiter answers_, sends_;
};

/// Waits until all ranks have offered their memory. Where one fails instead, what was offered still
/// completes, and is told to `offered`, which therefore lives until that has happened.
template <typename Offered>
void meet(Endpoint& endpoint, Offered& offered) {
  try {
    endpoint.all_gather("");
  } catch (...) {
    const std::exception_ptr cause = std::current_exception();
    try {
      offered.wait_for_offers();
    } catch (...) {
      // The cause is told in its place.
    }
    std::rethrow_exception(cause);
  }
}

}  // namespace

ClockOffset measure_clock_offset(Endpoint& endpoint, const Clock& clock) {
  if (endpoint.rank() == 0) {
    Answers answers(endpoint, clock);
    answers.offer();
    meet(endpoint, answers);
    answers.wait_for_offers();
    return {clock.now(), 0, 0};
  }
  Questions asked(endpoint, clock);
  asked.offer();
  meet(endpoint, asked);
  return asked.ask();
}

}  // namespace purine::net
