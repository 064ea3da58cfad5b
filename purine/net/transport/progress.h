// The thread that moves an endpoint's messages.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "purine/net/mpi_endpoint.h"
#include "purine/net/transport/heartbeat.h"
#include "purine/net/transport/messenger.h"
#include "purine/net/transport/pace.h"
#include "purine/net/transport/transfers.h"
#include "purine/net/transport/words.h"

namespace purine::net {

/// What an endpoint and its thread share: requests of callers on the way in, what was heard on the way out.
///
/// The thread goes through phases: running; departing, when this rank is done and waits for the others. Or it
/// is failing, when all are told and what is under way ends; then failed, when nothing touches the callers'
/// memory any more; and parting, when it waits for a while that the others are as far: a launcher ends all
/// ranks when the first one has gone, and each should have said why.
class Progress final : private MessengerListener {
 public:
  explicit Progress(const ConnectionOptions& options);

  /// The thread's work, from making the messenger to its end. Says in `started` that the ranks are connected,
  /// or why not.
  void run(const std::function<std::unique_ptr<Messenger>()>& make_messenger, std::promise<void>& started);

  // Known once the ranks are connected.
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(hosts_.size()); }
  const std::string& host(int rank) const { return hosts_.at(static_cast<std::size_t>(rank)); }

  // For callers, on any thread.
  void begin(const Incoming& incoming) { add(incoming, wakes(incoming.bytes)); }
  void begin(const Outgoing& outgoing) { add(outgoing, wakes(outgoing.bytes)); }
  void announce_end(std::int64_t run, std::int64_t end);
  std::vector<std::int64_t> announced_ends(std::int64_t run) const;
  void fail(std::string_view cause);
  /// Ends the thread's work in agreement with the other ranks; false if the messenger doesn't come to its
  /// end.
  bool leave();
  void observe(std::shared_ptr<TransferObserver> observer);
  void fit_to(double bytes_per_second) { add(pace_of(bytes_per_second), true); }

 private:
  using Clock = Heartbeat::Clock;
  using Request = std::variant<Incoming, Outgoing, Words, Pace>;
  enum class Phase : std::uint8_t { running, departing, failing, failed, parting, done };

  bool wakes(std::size_t bytes) const;
  void add(Request request, bool at_once);
  bool take_requests();
  void begin_request(const Request& request);
  bool work();
  void wait(bool busy);
  void check_others(Clock::time_point now);
  void tell_others(const Words& words);
  void start_departing();
  void finish();

  /// How it is known that a rank has failed: it said so, it left, or nothing is heard of it.
  enum class Failed : std::uint32_t { spoke, lost, left };
  /// The first cause that this rank knows is the one that counts.
  void set_failure(int rank, const std::string& text, Failed how = Failed::spoke);
  void start_failing();
  void work_on_failing(Clock::time_point now);
  void end_failing();
  void start_parting();

  void words_arrived(int peer, std::string_view encoded) override;
  void chunk_sent(std::uint64_t ticket) override;
  void chunk_received(int peer, std::uint64_t ticket) override;
  void chunk_withdrawn(std::uint64_t ticket) override;
  void connection_failed(int peer, std::string_view reason) override;
  void heard(int peer);

  const ConnectionOptions options_;
  const bool on_only_core_;
  int rank_ = 0;
  std::vector<std::string> hosts_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // for the thread: there is something to do
  std::vector<Request> requests_;
  std::shared_ptr<TransferObserver> observer_;
  bool observer_changed_ = false;
  bool leaving_ = false;
  bool wake_ = false;
  std::exception_ptr failure_;
  std::string failure_text_;
  int failed_rank_ = -1;
  Failed failed_how_ = Failed::spoke;
  std::map<std::int64_t, std::vector<std::int64_t>> ends_;
  std::condition_variable ended_;  // for the caller that leaves
  bool finishing_ = false;
  bool over_ = false;

  // The thread's own.
  SteadyClock clock_;
  std::unique_ptr<Messenger> messenger_;
  std::optional<Transfers> transfers_;
  std::optional<Pace> pace_;  // once links are measured
  std::optional<Heartbeat> heartbeat_;
  Phase phase_ = Phase::running;
  std::vector<Request> taken_;
  std::vector<bool> departed_;  // by rank
  std::vector<bool> quiet_;
  std::vector<bool> broken_;  // ranks to which there is no connection any more
  bool told_quiet_ = false;
  bool withdrawn_ = false;
  bool stuck_ = false;  // the messenger still has memory of callers, and must not be polled
  Clock::time_point deadline_;
  Clock::time_point last_event_;
};

}  // namespace purine::net
