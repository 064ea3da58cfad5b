#include "purine/net/start_up.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "purine/core/error.h"
#include "purine/core/json_helpers.h"
#include "purine/net/transport/waiter.h"
#include "purine/runtime/cpu_workers.h"

namespace purine::net {
namespace {

using Clock = std::chrono::steady_clock;

/// Copies and all_gather don't use this channel.
constexpr std::uint32_t measuring_channel = std::numeric_limits<std::uint32_t>::max() - 1;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

int neighbour(const Endpoint& endpoint, int step) {
  return (endpoint.rank() + step + endpoint.size()) % endpoint.size();
}

/// Sends a byte to the next rank time and again, which sends each back; and does so for the rank before.
/// Everything is received into memory that was offered long before.
class Echo final : public CompletionListener {
 public:
  explicit Echo(Endpoint& endpoint) : endpoint_(endpoint) {
    for (std::int64_t i = 0; i < count; ++i) {
      endpoint_.receive({neighbour(endpoint_, -1), measuring_channel, 2 * i}, &call(i), 1, *this,
                        static_cast<std::uint64_t>(i));
      endpoint_.receive({neighbour(endpoint_, 1), measuring_channel, 2 * i + 1}, &answer(i), 1, answers_, 0);
    }
  }

  /// Half a round trip, in seconds: the median.
  double latency() {
    std::array<double, count> times{};
    std::exception_ptr error;
    for (std::int64_t i = 0; i < count; ++i) {
      const Clock::time_point begin = Clock::now();
      endpoint_.send({neighbour(endpoint_, 1), measuring_channel, 2 * i}, &byte_, 1, 0, sends_, 0);
      try {
        answers_.wait(1);
      } catch (...) {
        error = std::current_exception();  // all others end with it as well
      }
      times[static_cast<std::size_t>(i)] = seconds_since(begin) / 2;
    }
    wait_all({{&calls_, count}, {&sends_, count}, {&echoes_, count}});
    if (error) std::rethrow_exception(error);
    std::nth_element(times.begin(), times.begin() + count / 2, times.end());
    return times[count / 2];
  }

  /// A call of the rank before has come.
  void completed(std::uint64_t tag, std::exception_ptr error) override {
    if (error) {
      echoes_.completed(0, error);
    } else {
      endpoint_.send({neighbour(endpoint_, -1), measuring_channel, 2 * static_cast<std::int64_t>(tag) + 1},
                     &byte_, 1, 0, echoes_, 0);
    }
    calls_.completed(tag, error);
  }

 private:
  static constexpr std::int64_t count = 31;
  std::byte& call(std::int64_t i) { return memory_[static_cast<std::size_t>(2 * i)]; }
  std::byte& answer(std::int64_t i) { return memory_[static_cast<std::size_t>(2 * i + 1)]; }

  Endpoint& endpoint_;
  std::array<std::byte, 2 * count> memory_{};
  std::byte byte_{};
  Waiter calls_, answers_, sends_, echoes_;
};

/// Messages of one size, to the next rank and from the one before.
class Stream {
 public:
  explicit Stream(Endpoint& endpoint) : endpoint_(endpoint), sent_(bytes), received_(under_way * bytes) {}

  /// The seconds that it takes.
  double run(int messages) {
    const Clock::time_point begin = Clock::now();
    std::exception_ptr error;
    for (int i = 0; i < messages; ++i) {
      try {
        if (i >= under_way) wait(1);
      } catch (...) {
        error = std::current_exception();  // all others end with it as well
      }
      endpoint_.receive({neighbour(endpoint_, -1), measuring_channel, i},
                        &received_[static_cast<std::size_t>(i % under_way) * bytes], bytes, arrivals_, 0);
      endpoint_.send({neighbour(endpoint_, 1), measuring_channel, i}, sent_.data(), bytes, 0, sends_, 0);
    }
    wait(std::min(messages, under_way));
    if (error) std::rethrow_exception(error);
    return seconds_since(begin);
  }

  static constexpr std::size_t bytes = std::size_t{1} << 20;

 private:
  static constexpr int under_way = 8;

  void wait(int count) { wait_all({{&arrivals_, count}, {&sends_, count}}); }

  Endpoint& endpoint_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
  Waiter arrivals_, sends_;
};

bool same_network(const Interface& one, const Interface& other) {
  const auto bits = [](const std::string& address) {
    in_addr binary{};
    ::inet_pton(AF_INET, address.c_str(), &binary);
    return std::uint64_t{ntohl(binary.s_addr)};
  };
  const int rest = 32 - std::max(one.prefix, other.prefix);
  return bits(one.address) >> rest == bits(other.address) >> rest;
}

/// Columns as wide as their widest cell.
std::string align(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

LocalRank local_rank(const Endpoint& endpoint) {
  LocalRank local{0, 0};
  const std::string host = endpoint.host(endpoint.rank());
  for (int rank = 0; rank < endpoint.size(); ++rank) {
    if (endpoint.host(rank) != host) continue;
    if (rank < endpoint.rank()) ++local.rank;
    ++local.size;
  }
  return local;
}

std::vector<Link> measure_links(Endpoint& endpoint) {
  endpoint.all_gather("");  // connected, and at the same point
  const double latency = Echo(endpoint).latency();

  Stream stream(endpoint);
  stream.run(1);  // a connection starts slowly
  double bytes_per_second = 0;
  constexpr int most_messages = 256;
  for (int messages = 1; messages <= most_messages; messages *= 2) {
    const double seconds = stream.run(messages);
    bytes_per_second = static_cast<double>(Stream::bytes) * messages / seconds;
    const std::vector<std::string> all = endpoint.all_gather(seconds >= 0.1 ? "enough" : "more");
    if (std::find(all.begin(), all.end(), "more") == all.end()) break;
  }

  const std::vector<std::string> all = endpoint.all_gather(fmt::format("{} {}", bytes_per_second, latency));
  std::vector<Link> links(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t space = all[i].find(' ');
    links[i].latency = std::stod(all[i].substr(space));
    links[(i + all.size() - 1) % all.size()].bytes_per_second = std::stod(all[i].substr(0, space));
  }
  endpoint.fit_to(std::min_element(links.begin(), links.end(), [](const Link& one, const Link& other) {
                    return one.bytes_per_second < other.bytes_per_second;
                  })->bytes_per_second);
  return links;
}

std::vector<Interface> interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET || each->ifa_netmask == nullptr)
      continue;
    if ((each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const auto binary = [](const sockaddr* address) {
      sockaddr_in internet{};
      std::memcpy(&internet, address, sizeof(internet));
      return internet.sin_addr;
    };
    const in_addr address = binary(each->ifa_addr);
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &address, text.data(), text.size());
    found.push_back({each->ifa_name, text.data(), std::popcount(binary(each->ifa_netmask).s_addr)});
  }
  return found;
}

Interface interface_to(const std::vector<Interface>& own, const std::vector<Interface>& other) {
  for (const Interface& one : own) {
    for (const Interface& another : other) {
      if (same_network(one, another)) return one;
    }
  }
  return own.empty() ? Interface{} : own.front();
}

int own_cores(Endpoint& endpoint) {
  const std::vector<int> cores = CpuWorkers::available_cores();
  std::string text = endpoint.host(endpoint.rank());
  for (const int core : cores) text += " " + std::to_string(core);
  const std::vector<std::string> all = endpoint.all_gather(text);
  const auto mine = all.begin() + endpoint.rank();
  const auto sharing = static_cast<int>(std::count(all.begin(), all.end(), text));
  const auto before = static_cast<int>(std::count(all.begin(), mine, text));
  const auto count = static_cast<int>(cores.size());
  return std::max(1, count * (before + 1) / sharing - count * before / sharing);
}

std::vector<RankDescription> learn_ranks(Endpoint& endpoint, const std::string& devices, int cores) {
  using nlohmann::json;
  json addresses = json::array();
  for (const Interface& each : interfaces()) addresses.push_back({each.name, each.address, each.prefix});
  const json own{{"devices", devices}, {"cores", cores}, {"addresses", addresses}};
  const std::vector<std::string> all = endpoint.all_gather(own.dump());
  const std::vector<Link> links = measure_links(endpoint);

  std::vector<json> said;
  std::vector<std::vector<Interface>> networks;
  for (const std::string& text : all) {
    said.push_back(parse_json(text));
    networks.emplace_back();
    for (const json& each : said.back()["addresses"]) networks.back().push_back({each[0], each[1], each[2]});
  }
  std::vector<RankDescription> ranks;
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    std::size_t other = (rank + 1) % said.size();
    while (other != rank && said[other]["addresses"] == said[rank]["addresses"])
      other = (other + 1) % said.size();
    ranks.push_back({endpoint.host(static_cast<int>(rank)), interface_to(networks[rank], networks[other]),
                     said[rank]["devices"], said[rank]["cores"], links[rank]});
  }
  return ranks;
}

std::string ranks_table(const std::vector<RankDescription>& ranks) {
  std::vector<std::vector<std::string>> rows{
      {"rank", "host", "address", "devices", "cores", "to the next rank"}};
  for (const RankDescription& rank : ranks) {
    const Interface& used = rank.interface;
    rows.push_back({std::to_string(rows.size() - 1), rank.host,
                    used.name.empty() ? "-" : used.address + " (" + used.name + ")", rank.devices,
                    std::to_string(rank.cores),
                    fmt::format("{:.2f} Gbit/s, {:.0f} us", 8e-9 * rank.link.bytes_per_second,
                                1e6 * rank.link.latency)});
  }
  return align(rows);
}

std::string describe_ranks(Endpoint& endpoint, const std::string& devices, int cores) {
  return ranks_table(learn_ranks(endpoint, devices, cores));
}

}  // namespace purine::net
