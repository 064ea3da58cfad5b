#include "purine/net/mpi_endpoint.h"

#include <signal.h>

#include <algorithm>
#include <future>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "purine/core/error.h"
#include "purine/net/transport/all_gather.h"
#include "purine/net/transport/messenger.h"
#include "purine/net/transport/pace.h"
#include "purine/net/transport/progress.h"

namespace purine::net {
namespace {

/// Copies don't use this channel: there would have to be 2^32 of them.
constexpr std::uint32_t all_gather_channel = std::numeric_limits<std::uint32_t>::max();

void check_options(const ConnectionOptions& options) {
  if (options.stall_limit.count() < 100) {
    throw Error("network", "the stall limit is " + std::to_string(options.stall_limit.count()) + " ms",
                "it must be 100 ms at least, for signs of life to arrive in time");
  }
  if (options.chunk_bytes < 1 || options.chunk_bytes > std::size_t{1} << 30) {
    throw Error("network", "chunks of " + std::to_string(options.chunk_bytes) + " bytes",
                "they may have 1 to 1073741824 bytes");
  }
}

/// A thread that gets no signals: they are for those of the program. Threads that it starts get none either.
std::thread start_without_signals(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

class ProgressEndpoint final : public Endpoint {
 public:
  ProgressEndpoint(const std::function<std::unique_ptr<Messenger>()>& make_messenger,
                   const ConnectionOptions& options)
      : notice_{options.waits, options.notice_after}, progress_(std::make_shared<Progress>(options)) {
    const auto started = std::make_shared<std::promise<void>>();
    std::future<void> connected = started->get_future();
    thread_ = start_without_signals(
        [progress = progress_, make_messenger, started] { progress->run(make_messenger, *started); });
    if (connected.wait_for(options.start_limit) != std::future_status::ready) {
      thread_.detach();
      throw Error(
          "network",
          "the other ranks have not come within " + std::to_string(options.start_limit.count() / 1000) + " s",
          "do all of them start, and reach each other by the network?");
    }
    try {
      connected.get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }

  ProgressEndpoint(const ProgressEndpoint&) = delete;
  ProgressEndpoint& operator=(const ProgressEndpoint&) = delete;

  ~ProgressEndpoint() override {
    if (progress_->leave()) {
      thread_.join();
    } else {
      thread_.detach();  // it hangs in MPI's end, which a rank that died meanwhile does not come to
    }
  }

  int rank() const override { return progress_->rank(); }
  int size() const override { return progress_->size(); }
  std::string host(int rank) const override { return progress_->host(rank); }

  void receive(const Message& message, std::byte* memory, std::size_t bytes, CompletionListener& listener,
               std::uint64_t tag) override {
    check_peer(message);
    progress_->begin(Incoming{message, memory, bytes, 0, &listener, tag});
  }

  void send(const Message& message, const std::byte* memory, std::size_t bytes, double urgency,
            CompletionListener& listener, std::uint64_t tag) override {
    check_peer(message);
    progress_->begin(Outgoing{message, memory, bytes, urgency, &listener, tag});
  }

  std::vector<std::string> all_gather(std::string_view words) override {
    const std::lock_guard lock(all_gather_mutex_);
    return net::all_gather(*this, words, all_gather_channel, all_gathers_++, notice_);
  }

  void announce_end(std::int64_t run, std::int64_t end) override { progress_->announce_end(run, end); }
  std::vector<std::int64_t> announced_ends(std::int64_t run) const override {
    return progress_->announced_ends(run);
  }
  void fail(std::string_view cause) override { progress_->fail(cause); }
  void observe(std::shared_ptr<TransferObserver> observer) override {
    progress_->observe(std::move(observer));
  }
  void fit_to(double bytes_per_second) override { progress_->fit_to(bytes_per_second); }

 private:
  void check_peer(const Message& message) const {
    PURINE_CHECK(message.peer >= 0 && message.peer < size() && message.peer != rank());
  }

  const WaitNotice notice_;
  std::shared_ptr<Progress> progress_;
  std::thread thread_;
  std::mutex all_gather_mutex_;
  std::int64_t all_gathers_ = 0;
};

}  // namespace

std::unique_ptr<Endpoint> connect(const std::function<std::unique_ptr<Messenger>()>& make_messenger,
                                  const ConnectionOptions& options) {
  check_options(options);
  return std::make_unique<ProgressEndpoint>(make_messenger, options);
}

std::unique_ptr<Endpoint> connect_mpi(const ConnectionOptions& options) {
  const std::size_t largest = std::max(options.chunk_bytes, largest_chunk);
  return connect([largest] { return start_mpi(largest); }, options);
}

}  // namespace purine::net
