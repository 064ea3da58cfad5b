#include "purine/net/transport/all_gather.h"

#include <algorithm>
#include <cstring>

#include "purine/core/error.h"
#include "purine/net/transport/waiter.h"

namespace purine::net {
namespace {

/// The first texts, each after its size.
std::string pack(const std::vector<std::string>& texts, std::size_t count) {
  std::string packed;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t size = texts[i].size();
    packed.append(reinterpret_cast<const char*>(&size), sizeof(size));
    packed += texts[i];
  }
  return packed;
}

void unpack(std::string_view packed, std::vector<std::string>& texts) {
  while (!packed.empty()) {
    std::uint64_t size = 0;
    PURINE_CHECK(packed.size() >= sizeof(size));
    std::memcpy(&size, packed.data(), sizeof(size));
    packed.remove_prefix(sizeof(size));
    PURINE_CHECK(packed.size() >= size);
    texts.emplace_back(packed.substr(0, size));
    packed.remove_prefix(size);
  }
}

/// Sends to one rank and receives from another.
void exchange(Endpoint& endpoint, const Message& to, std::string_view sent, const Message& from,
              char* received, std::size_t bytes, const WaitNotice& notice) {
  Waiter waiter;
  endpoint.receive(from, reinterpret_cast<std::byte*>(received), bytes, waiter, 0);
  endpoint.send(to, reinterpret_cast<const std::byte*>(sent.data()), sent.size(), 0, waiter, 0);
  if (notice.waits) {
    std::chrono::milliseconds waited = notice.after;
    std::chrono::milliseconds next = waited;
    while (!waiter.wait_for(2, next)) {
      notice.waits(from.peer, std::chrono::duration<double>(waited).count());
      next = waited;
      waited += next;
    }
  }
  waiter.wait(2);
}

}  // namespace

std::vector<std::string> all_gather(Endpoint& endpoint, std::string_view words, std::uint32_t channel,
                                    std::int64_t call, const WaitNotice& notice) {
  const int size = endpoint.size();
  const int rank = endpoint.rank();
  constexpr std::int64_t messages_a_call = 128;  // two for each binary digit of an int, and more than enough
  std::int64_t version = call * messages_a_call;

  std::vector<std::string> texts{std::string(words)};  // of this rank, the next one and so on
  for (int distance = 1; distance < size; distance *= 2) {
    const int to = (rank - distance + size) % size;
    const int from = (rank + distance) % size;
    const int count = std::min(distance, size - distance);
    const std::string packed = pack(texts, static_cast<std::size_t>(count));
    const std::uint64_t bytes = packed.size();
    std::uint64_t expected = 0;
    exchange(endpoint, {to, channel, version}, {reinterpret_cast<const char*>(&bytes), sizeof(bytes)},
             {from, channel, version}, reinterpret_cast<char*>(&expected), sizeof(expected), notice);
    std::string received(expected, '\0');
    exchange(endpoint, {to, channel, version + 1}, packed, {from, channel, version + 1}, received.data(),
             received.size(), notice);
    unpack(received, texts);
    version += 2;
  }
  PURINE_CHECK_EQUAL(texts.size(), static_cast<std::size_t>(size));
  std::rotate(texts.begin(), texts.begin() + (size - rank) % size, texts.end());
  return texts;
}

}  // namespace purine::net
