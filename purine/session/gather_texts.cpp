#include "purine/session/gather_texts.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "purine/net/transport/waiter.h"

namespace purine {
namespace {

/// The version, which numbers all collective calls and runs, tells these messages from others.
constexpr std::uint32_t channel = 0x80000000U;

}  // namespace

std::vector<std::string> gather_texts(Runtime& runtime, std::string text) {
  Endpoint* endpoint = runtime.endpoint();
  if (endpoint == nullptr) return {std::move(text)};
  const std::int64_t version = runtime.next_run();
  const std::vector<std::string> sizes = endpoint->all_gather(std::to_string(text.size()));
  net::Waiter waiter;
  if (endpoint->rank() != 0) {
    endpoint->send({0, channel, version}, reinterpret_cast<const std::byte*>(text.data()), text.size(), 0,
                   waiter, 0);
    waiter.wait(1);
    return {};
  }
  std::vector<std::string> texts;
  for (const std::string& size : sizes) texts.emplace_back(std::stoull(size), '\0');
  texts.front() = std::move(text);
  for (int rank = 1; rank < endpoint->size(); ++rank) {
    std::string& place = texts[static_cast<std::size_t>(rank)];
    endpoint->receive({rank, channel, version}, reinterpret_cast<std::byte*>(place.data()), place.size(),
                      waiter, 0);
  }
  waiter.wait(endpoint->size() - 1);
  return texts;
}

}  // namespace purine
