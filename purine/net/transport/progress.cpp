#include "purine/net/transport/progress.h"

#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "purine/core/error.h"
#include "purine/net/transport/pauses.h"
#include "purine/runtime/cpu_workers.h"
#include "purine/runtime/yielding_thread.h"

namespace purine::net {
namespace {

using std::chrono::milliseconds;

/// For a message of so many bytes a pause between looks is little beside its own way.
constexpr std::size_t large_bytes = std::size_t{64} << 10U;

/// How long a rank that fails tells others and lets chunks end, how long it then waits for the others' end,
/// and how long MPI may take to finalise.
constexpr milliseconds failing_limit{2000};
constexpr milliseconds parting_limit{2000};
constexpr milliseconds finish_limit{10'000};

bool all_of(const std::vector<bool>& flags) {
  return std::find(flags.begin(), flags.end(), false) == flags.end();
}

std::string seconds(milliseconds duration) {
  std::string text = std::to_string(static_cast<double>(duration.count()) / 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

}  // namespace

Progress::Progress(const ConnectionOptions& options)
    : options_(options), on_only_core_(CpuWorkers::available_cores().size() == 1) {}

void Progress::run(const std::function<std::unique_ptr<Messenger>()>& make_messenger,
                   std::promise<void>& started) {
  ::prctl(PR_SET_NAME, "purine-network");
  yield_to_workers();
  ::prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds by which a pause may be longer; 50 us by default
  try {
    messenger_ = make_messenger();
    rank_ = messenger_->rank();
    for (int rank = 0; rank < messenger_->size(); ++rank) hosts_.push_back(messenger_->host(rank));
    for (std::vector<bool>* flags : {&departed_, &quiet_, &broken_}) flags->resize(hosts_.size());
    for (std::vector<bool>* flags : {&departed_, &quiet_}) (*flags)[static_cast<std::size_t>(rank_)] = true;
    transfers_.emplace(
        *messenger_, clock_,
        TransferOptions{.chunk_bytes = options_.chunk_bytes, .bytes_in_flight = options_.bytes_in_flight});
    heartbeat_.emplace(options_.stall_limit, Clock::now());
  } catch (...) {
    started.set_exception(std::current_exception());
    return;
  }
  started.set_value();

  while (phase_ != Phase::done) {
    bool busy = false;
    try {
      busy = take_requests();
      if (!stuck_) busy = work() || busy;
    } catch (const std::exception& error) {
      set_failure(rank_, error.what());
      // What failing itself needs can fail as well: then there is nobody left to tell.
      if (phase_ == Phase::failing || phase_ == Phase::parting) {
        stuck_ = true;
        end_failing();
      }
      busy = true;
    }
    wait(busy);
  }
  const std::lock_guard lock(mutex_);
  over_ = true;
  ended_.notify_all();
}

// Requests of callers.

// Where the worker that has just made a message has the only core, waking this thread would move the message
// before that worker's next operator. When its pause is over it does so beside the operator.
bool Progress::wakes(std::size_t bytes) const {
  return !on_only_core_ || bytes < large_bytes;
}

void Progress::add(Request request, bool at_once) {
  const std::lock_guard lock(mutex_);
  requests_.push_back(std::move(request));
  if (!at_once || wake_) return;
  wake_ = true;
  changed_.notify_one();
}

bool Progress::take_requests() {
  bool leaving = false;
  bool failure = false;
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(requests_);
    leaving = leaving_;
    failure = failure_ != nullptr;
    wake_ = false;
    if (observer_changed_) transfers_->observe(observer_);
    observer_changed_ = false;
  }
  if (failure && (phase_ == Phase::running || phase_ == Phase::departing)) start_failing();
  for (const Request& request : taken_) begin_request(request);
  const bool any = !taken_.empty();
  taken_.clear();
  if (leaving && phase_ == Phase::running) start_departing();
  if (leaving && phase_ == Phase::failed) start_parting();
  return any;
}

void Progress::begin_request(const Request& request) {
  if (const auto* incoming = std::get_if<Incoming>(&request)) {
    transfers_->receive(*incoming);
  } else if (const auto* outgoing = std::get_if<Outgoing>(&request)) {
    transfers_->send(*outgoing);
  } else if (const auto* pace = std::get_if<Pace>(&request)) {
    pace_ = *pace;
    transfers_->set_chunk_bytes(pace->chunk_bytes);
    messenger_->bound_unsent(pace->unsent_bytes);
  } else if (phase_ == Phase::running) {
    tell_others(std::get<Words>(request));
  }
}

void Progress::announce_end(std::int64_t run, std::int64_t end) {
  {
    const std::lock_guard lock(mutex_);
    ends_.try_emplace(run, hosts_.size(), -1).first->second[static_cast<std::size_t>(rank_)] = end;
  }
  add(Words{.kind = Words::Kind::end, .version = run, .bytes = end}, true);
}

std::vector<std::int64_t> Progress::announced_ends(std::int64_t run) const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  const auto found = ends_.find(run);
  return found != ends_.end() ? found->second : std::vector<std::int64_t>(hosts_.size(), -1);
}

void Progress::fail(std::string_view cause) {
  set_failure(rank_, std::string(cause));
}

bool Progress::leave() {
  std::unique_lock lock(mutex_);
  leaving_ = true;
  wake_ = true;
  changed_.notify_one();
  ended_.wait(lock, [&] { return finishing_ || over_; });
  return ended_.wait_for(lock, finish_limit, [&] { return over_; });
}

void Progress::observe(std::shared_ptr<TransferObserver> observer) {
  const std::lock_guard lock(mutex_);
  observer_ = std::move(observer);
  observer_changed_ = true;
}

// The thread's turns.

bool Progress::work() {
  const bool any = messenger_->poll(*this);
  const Clock::time_point now = Clock::now();
  if (phase_ == Phase::running || phase_ == Phase::departing) check_others(now);
  if (phase_ == Phase::failing) work_on_failing(now);
  if (phase_ == Phase::parting && (all_of(departed_) || now > deadline_)) phase_ = Phase::done;
  if (phase_ == Phase::departing && all_of(departed_) && !messenger_->sending()) finish();
  return any;
}

void Progress::wait(bool busy) {
  const Clock::time_point now = Clock::now();
  if (busy) last_event_ = now;
  if (busy || phase_ == Phase::done) return;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stuck_ ? longest_pause : pause_after(now - last_event_), [&] { return wake_; });
}

void Progress::check_others(Clock::time_point now) {
  if (hosts_.size() == 1) return;
  const int ranks = static_cast<int>(hosts_.size());
  heartbeat_->turn(now);
  if (heartbeat_->due(now)) {
    messenger_->send_words((rank_ + 1) % ranks, Words{.kind = Words::Kind::heartbeat}.encode());
    if (pace_) messenger_->bound_unsent(pace_->unsent_bytes);  // of connections that are new
  }
  const int watched = (rank_ + ranks - 1) % ranks;
  if (heartbeat_->silent(now) && !departed_[static_cast<std::size_t>(watched)]) {
    set_failure(watched,
                "at " + host(watched) + ", silent for longer than " + seconds(options_.stall_limit) +
                    "; the process is stopped or gone, or the network is down",
                Failed::lost);
    return;
  }
  if (const std::optional<int> missed = transfers_->missed()) {
    set_failure(*missed, "at " + host(*missed) + ", left the run while other ranks go on", Failed::left);
  }
}

void Progress::tell_others(const Words& words) {
  const std::string encoded = words.encode();
  for (int peer = 0; peer < static_cast<int>(hosts_.size()); ++peer) {
    if (peer != rank_ && !broken_[static_cast<std::size_t>(peer)]) messenger_->send_words(peer, encoded);
  }
}

void Progress::start_departing() {
  if (const std::size_t pending = transfers_->pending(); pending > 0) {
    fail("left the run with " + std::to_string(pending) + " messages under way");
    return;
  }
  for (int peer = 0; peer < static_cast<int>(hosts_.size()); ++peer) {
    if (peer == rank_) continue;
    messenger_->send_words(peer,
                           Words{.kind = Words::Kind::departure, .bytes = transfers_->sent(peer)}.encode());
  }
  phase_ = Phase::departing;
}

void Progress::finish() {
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
    ended_.notify_all();
  }
  phase_ = Phase::done;
  messenger_->finish();
}

// Failure.

void Progress::set_failure(int rank, const std::string& text, Failed how) {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = std::make_exception_ptr(RemoteError(
      rank, text, {}, how == Failed::spoke ? RemoteError::Rank::speaks : RemoteError::Rank::is_gone));
  failure_text_ = text;
  failed_rank_ = rank;
  failed_how_ = how;
  wake_ = true;
  changed_.notify_one();
}

void Progress::start_failing() {
  phase_ = Phase::failing;
  deadline_ = Clock::now() + failing_limit;
  Words words{.kind = Words::Kind::failure,
              .slot = static_cast<std::uint32_t>(failed_how_),
              .rank = failed_rank_,
              .text = failure_text_};
  const std::size_t longest = Messenger::longest_words - Words::overhead;
  if (words.text.size() > longest) words.text.resize(longest);
  // A lost rank is told too, in case that it comes back, but not waited for.
  if (failed_how_ == Failed::lost) quiet_[static_cast<std::size_t>(failed_rank_)] = true;
  transfers_->fail(failure_);
  tell_others(words);
}

void Progress::work_on_failing(Clock::time_point now) {
  if (!told_quiet_ && transfers_->sending_but_to(failed_how_ == Failed::lost ? failed_rank_ : -1) == 0) {
    told_quiet_ = true;
    tell_others({.kind = Words::Kind::quiet});
  }
  if (!withdrawn_ && told_quiet_ && all_of(quiet_)) {
    withdrawn_ = true;
    transfers_->withdraw();
  }
  const bool ended = withdrawn_ && transfers_->pending() == 0 && !messenger_->sending();
  if (ended || now > deadline_) end_failing();
}

void Progress::end_failing() {
  stuck_ = stuck_ || transfers_->pending() > 0;
  transfers_->abandon();
  phase_ = Phase::failed;
  const std::lock_guard lock(mutex_);
  finishing_ = true;
  wake_ = true;
  ended_.notify_all();
}

void Progress::start_parting() {
  phase_ = stuck_ ? Phase::done : Phase::parting;
  if (stuck_) return;
  deadline_ = Clock::now() + parting_limit;
  if (failed_how_ == Failed::lost) departed_[static_cast<std::size_t>(failed_rank_)] = true;
  tell_others({.kind = Words::Kind::departure});
}

// What the messenger tells.

void Progress::heard(int peer) {
  const int ranks = static_cast<int>(hosts_.size());
  if (peer == (rank_ + ranks - 1) % ranks) heartbeat_->heard(Clock::now());
}

void Progress::words_arrived(int peer, std::string_view encoded) {
  heard(peer);
  const Words words = Words::decode(encoded);
  switch (words.kind) {
    case Words::Kind::heartbeat:
      break;
    case Words::Kind::credit:
      transfers_->credit(peer, words);
      break;
    case Words::Kind::refusal:
      transfers_->refusal(peer, words);
      break;
    case Words::Kind::beginning:
      transfers_->beginning(peer, words);
      break;
    case Words::Kind::end: {
      const std::lock_guard lock(mutex_);
      ends_.try_emplace(words.version, hosts_.size(), -1).first->second[static_cast<std::size_t>(peer)] =
          words.bytes;
      break;
    }
    case Words::Kind::failure:
      set_failure(words.rank, words.text, static_cast<Failed>(words.slot));
      break;
    case Words::Kind::quiet:
      quiet_[static_cast<std::size_t>(peer)] = true;
      break;
    case Words::Kind::departure:
      departed_[static_cast<std::size_t>(peer)] = true;
      transfers_->departed(peer, words.bytes);
      break;
  }
}

void Progress::chunk_sent(std::uint64_t ticket) {
  transfers_->chunk_sent(ticket);
}

void Progress::chunk_received(int peer, std::uint64_t ticket) {
  heard(peer);
  transfers_->chunk_received(ticket);
}

void Progress::chunk_withdrawn(std::uint64_t ticket) {
  transfers_->chunk_withdrawn(ticket);
}

void Progress::connection_failed(int peer, std::string_view reason) {
  for (std::vector<bool>* flags : {&broken_, &quiet_, &departed_})
    (*flags)[static_cast<std::size_t>(peer)] = true;
  set_failure(peer, "at " + host(peer) + ", the connection is lost: " + std::string(reason), Failed::lost);
}

}  // namespace purine::net
