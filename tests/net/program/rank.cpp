// One rank of a test that mpirun starts:
//   net_rank check NAME…      runs these checks of endpoints
//   net_rank steps N HOW      passes messages around in a ring N times; HOW is what rank 1 does in the
//   middle:
//                             `nothing`, or leaves by `return` or `exit`
//   net_rank table            prints the table of ranks at rank 0, or `alone` where nothing has started it
//   net_rank unsent           measures the links; prints how many bytes that have yet to be sent the system
//                             keeps for each TCP connection
// A failure is one line on standard error and status 1.
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "purine/net/launcher.h"
#include "purine/net/mpi_endpoint.h"
#include "purine/net/start_up.h"
#include "purine/net/transport/waiter.h"
#include "tests/net/conformance.h"

namespace {

using namespace purine;

/// The stall limit of these tests, from the environment.
net::ConnectionOptions options() {
  net::ConnectionOptions options;
  if (const char* limit = std::getenv("STALL_LIMIT_MS")) {
    options.stall_limit = std::chrono::milliseconds(std::atol(limit));
  }
  if (const char* bytes = std::getenv("CHUNK_BYTES")) {
    options.chunk_bytes = static_cast<std::size_t>(std::atol(bytes));
    options.bytes_in_flight = 4 * options.chunk_bytes;
  }
  return options;
}

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void check(Endpoint& endpoint, const std::vector<std::string>& names) {
  for (const test::EndpointCheck& one : test::endpoint_checks()) {
    if (std::find(names.begin(), names.end(), one.name) == names.end()) continue;
    try {
      one.run(endpoint);
    } catch (const std::exception& error) {
      endpoint.fail(one.name + ": " + error.what());
      throw;
    }
    say(fmt::format("rank {} passed {}", endpoint.rank(), one.name));
  }
}

/// Of all TCP connections of this process, by what the system says, a space before each.
std::string unsent_bounds() {
  std::string bounds;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    sockaddr_storage peer{};
    socklen_t peer_size = sizeof(peer);
    int bound = 0;
    socklen_t size = sizeof(bound);
    if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 &&
        ::getsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bound, &size) == 0) {
      bounds += fmt::format(" {}", bound);
    }
  }
  return bounds;
}

/// False if this rank leaves early.
bool pass_around(Endpoint& endpoint, std::int64_t steps, const std::string& how) {
  const int next = (endpoint.rank() + 1) % endpoint.size();
  const int previous = (endpoint.rank() + endpoint.size() - 1) % endpoint.size();
  std::vector<std::int64_t> sent(100'000);
  std::vector<std::int64_t> received(100'000);
  const std::size_t bytes = sent.size() * sizeof(sent[0]);
  for (std::int64_t step = 0; step < steps; ++step) {
    if (endpoint.rank() == 1 && step == steps / 2 && how != "nothing") {
      if (how == "exit") std::exit(0);
      return false;
    }
    std::fill(sent.begin(), sent.end(), 1000 * step + endpoint.rank());
    net::Waiter waiter;
    endpoint.receive({previous, 1, step}, reinterpret_cast<std::byte*>(received.data()), bytes, waiter, 0);
    endpoint.send({next, 1, step}, reinterpret_cast<const std::byte*>(sent.data()), bytes, 0, waiter, 0);
    waiter.wait(2);
    if (received != std::vector<std::int64_t>(received.size(), 1000 * step + previous)) {
      throw std::runtime_error("another message came");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

int run(const std::vector<std::string>& arguments) {
  const std::unique_ptr<Endpoint> endpoint = net::connect_if_launched(options());
  if (!endpoint) {
    say("alone");
    return 0;
  }
  try {
    say(fmt::format("rank {} of {} is process {} on {}", endpoint->rank(), endpoint->size(), ::getpid(),
                    endpoint->host(endpoint->rank())));
    if (arguments.at(0) == "check") {
      check(*endpoint, {arguments.begin() + 1, arguments.end()});
    } else if (arguments[0] == "steps") {
      if (pass_around(*endpoint, std::stol(arguments.at(1)), arguments.at(2))) {
        say(fmt::format("rank {} is done", endpoint->rank()));
      }
    }
    if (arguments[0] == "table") {
      const std::string table = net::describe_ranks(*endpoint, fmt::format("cpu:{}", endpoint->rank()), 8);
      if (endpoint->rank() == 0) fmt::print("{}", table);
    }
    if (arguments[0] == "unsent") {
      net::measure_links(*endpoint);
      endpoint->all_gather("");  // when this has come, so has what was said before
      say(fmt::format("rank {} keeps{}", endpoint->rank(), unsent_bounds()));
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {} failed: {}\n", endpoint->rank(), error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
