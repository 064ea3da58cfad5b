#include "purine/net/transport/words.h"

#include <cstring>
#include <type_traits>

#include "purine/core/error.h"

namespace purine::net {
namespace {

struct Header {
  std::int64_t version;
  std::int64_t bytes;
  Words::Kind kind;
  std::uint32_t channel;
  std::uint32_t slot;
  std::int32_t rank;
};
static_assert(std::is_trivially_copyable_v<Header> && sizeof(Header) == Words::overhead);

}  // namespace

std::string Words::encode() const {
  const Header header{version, bytes, kind, channel, slot, rank};
  std::string encoded(sizeof(header), '\0');
  std::memcpy(encoded.data(), &header, sizeof(header));
  return encoded + text;
}

Words Words::decode(std::string_view encoded) {
  Header header{};
  PURINE_CHECK(encoded.size() >= sizeof(header));
  std::memcpy(&header, encoded.data(), sizeof(header));
  return {header.kind,
          header.channel,
          header.version,
          header.bytes,
          header.slot,
          header.rank,
          std::string(encoded.substr(sizeof(header)))};
}

}  // namespace purine::net
