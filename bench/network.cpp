// What ranks pass to each other per second, and what that costs them:
//   mpirun -n 2 --host a,b bench_network [MESSAGE BYTES] [SECONDS] [CHUNK BYTES] [BYTES IN FLIGHT]
//   scripts/cluster run --rate 1gbit --pin -- build/release/bench/bench_network
// Every rank sends to the next one and receives from the one before: first one way only, from rank 0 to rank
// 1, then both ways, then both ways beside a thread that computes, then single numbers and single messages
// back and forth after a rest, alone and beside such a thread.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "purine/net/mpi_endpoint.h"
#include "purine/net/transport/waiter.h"

namespace {

using namespace purine;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Seconds that the endpoint's thread has run.
double network_seconds() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    double nanoseconds = 0;
    if (name == "purine-network" && std::ifstream(task.path() / "schedstat") >> nanoseconds) {
      return nanoseconds / 1e9;
    }
  }
  return 0;
}

/// Counts as fast as its core lets it.
class Computation {
 public:
  Computation()
      : thread_([this] {
          while (!stop_) {
            for (int i = 0; i < 1000; ++i) work_ = work_ * 6364136223846793005u + 1;
            ++rounds_;
          }
        }) {}
  ~Computation() {
    stop_ = true;
    thread_.join();
  }
  std::int64_t rounds() const { return rounds_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<std::int64_t> rounds_ = 0;
  std::uint64_t work_ = 1;
  std::thread thread_;
};

struct Rate {
  double bytes_per_second = 0;
  double network_share = 0;  // of a core, of the endpoint's thread
  double rounds_per_second = 0;
};

class Bench {
 public:
  Bench(Endpoint& endpoint, std::size_t bytes, double seconds)
      : endpoint_(endpoint), seconds_(seconds), bytes_(bytes) {
    for (std::vector<std::byte>* memory : {&sent_, &received_}) memory->resize(under_way * bytes);
  }

  /// Messages for some seconds, several under way at a time.
  Rate transfer(bool sends, bool receives, const Computation* computation) {
    endpoint_.all_gather("");
    const Clock::time_point begin = Clock::now();
    const double network = network_seconds();
    const std::int64_t rounds = computation != nullptr ? computation->rounds() : 0;
    double elapsed = 0;
    std::int64_t messages = 0;
    // Batches of so many messages that all ranks end after the same one.
    for (bool more = true; more;) {
      for (int message = 0; message < batch_; ++message) {
        if (message >= static_cast<int>(under_way)) wait(sends, receives);
        begin_message(sends, receives, static_cast<std::size_t>(message) % under_way);
      }
      for (std::size_t i = 0; i < std::min<std::size_t>(under_way, static_cast<std::size_t>(batch_)); ++i) {
        wait(sends, receives);
      }
      messages += batch_;
      elapsed = seconds_since(begin);
      more = endpoint_.all_gather(elapsed < seconds_ ? "more" : "")[0] == "more";
    }
    Rate rate;
    rate.bytes_per_second = static_cast<double>(messages) * static_cast<double>(bytes_) / elapsed;
    rate.network_share = (network_seconds() - network) / elapsed;
    if (computation != nullptr)
      rate.rounds_per_second = static_cast<double>(computation->rounds() - rounds) / elapsed;
    // Few enough batches that the ends of them don't count.
    batch_ = std::max(batch_, static_cast<int>(static_cast<double>(messages) / 4));
    return rate;
  }

  /// Seconds that a message takes from one rank to the next, when nothing has moved for a while.
  double message_seconds(std::size_t bytes) {
    constexpr int count = 60;
    double seconds = 0;
    for (int i = 0; i < count; ++i) {
      std::this_thread::sleep_for(endpoint_.rank() == 0 ? rest : rest / 2);  // others are ready before it
      net::Waiter waiter;
      endpoint_.receive({previous(), 2, round_}, received_.data(), bytes, waiter, 0);
      if (endpoint_.rank() != 0) waiter.wait(1);
      const Clock::time_point begin = Clock::now();
      endpoint_.send({next(), 2, round_}, sent_.data(), bytes, 0, waiter, 1);
      waiter.wait(endpoint_.rank() != 0 ? 1 : 2);
      seconds += seconds_since(begin) / endpoint_.size();
      ++round_;
    }
    return seconds / count;
  }

 private:
  static constexpr std::size_t under_way = 8;
  // No multiple of anything that recurs.
  static constexpr std::chrono::microseconds rest{21'370};

  int next() const { return (endpoint_.rank() + 1) % endpoint_.size(); }
  int previous() const { return (endpoint_.rank() + endpoint_.size() - 1) % endpoint_.size(); }

  void begin_message(bool sends, bool receives, std::size_t slot) {
    if (receives)
      endpoint_.receive({previous(), 1, version_}, &received_[slot * bytes_], bytes_, arrivals_, 0);
    if (sends) endpoint_.send({next(), 1, version_}, &sent_[slot * bytes_], bytes_, 0, departures_, 0);
    ++version_;
  }
  void wait(bool sends, bool receives) {
    if (receives) arrivals_.wait(1);
    if (sends) departures_.wait(1);
  }

  Endpoint& endpoint_;
  double seconds_;
  std::size_t bytes_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
  net::Waiter arrivals_;
  net::Waiter departures_;
  std::int64_t version_ = 0;
  std::int64_t round_ = 0;
  int batch_ = 16;
};

std::string percent(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

void report(Endpoint& endpoint, const std::string& what, const Rate& rate, double computed) {
  std::string line =
      fmt::format("rank {} {:<28} {:7.3f} Gbit/s each way, network thread {:>6} of a core", endpoint.rank(),
                  what, 8e-9 * rate.bytes_per_second, percent(rate.network_share));
  if (computed > 0) line += ", computation " + percent(rate.rounds_per_second / computed);
  const std::vector<std::string> lines = endpoint.all_gather(line);
  if (endpoint.rank() != 0) return;
  for (const std::string& each : lines) fmt::print("{}\n", each);
}

void run(std::size_t bytes, double seconds, const net::ConnectionOptions& options) {
  const std::unique_ptr<Endpoint> endpoint = net::connect_mpi(options);
  if (endpoint->size() < 2)
    throw Error("network", "one rank alone has nobody to send to", "start two with mpirun");
  Bench bench(*endpoint, bytes, seconds);
  const int rank = endpoint->rank();
  bench.transfer(rank == 0, rank == 1, nullptr);  // connects, and finds how many messages make a batch
  report(*endpoint,
         rank == 0   ? "sends"
         : rank == 1 ? "receives"
                     : "waits",
         bench.transfer(rank == 0, rank == 1, nullptr), 0);
  report(*endpoint, "sends and receives", bench.transfer(true, true, nullptr), 0);
  const auto messages = [&](const char* beside) {
    for (const std::size_t size : {std::size_t{8}, bytes}) {
      const double time = bench.message_seconds(size);
      if (rank == 0) fmt::print("a message of {} bytes{}: {:.0f} us\n", size, beside, 1e6 * time);
    }
  };
  {
    double alone = 0;
    const Computation computation;
    const Clock::time_point begin = Clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    alone = static_cast<double>(computation.rounds()) / seconds_since(begin);
    report(*endpoint, "does so beside a computation", bench.transfer(true, true, &computation), alone);
    messages(" beside computations");
  }
  messages("");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    net::ConnectionOptions options;
    if (argc > 3) options.chunk_bytes = std::stoul(argv[3]);
    if (argc > 4) options.bytes_in_flight = std::stoul(argv[4]);
    run(argc > 1 ? std::stoul(argv[1]) : std::size_t{4} << 20, argc > 2 ? std::stod(argv[2]) : 2.0, options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
