#include "purine/core/location.h"

#include <charconv>

#include "purine/core/error.h"

namespace purine {
namespace {

constexpr DeviceKind all_kinds[] = {DeviceKind::cpu, DeviceKind::cuda, DeviceKind::emu, DeviceKind::sim};

bool parse_number(std::string_view text, std::int32_t& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() && number >= 0;
}

}  // namespace

std::string_view name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu:
      return "cpu";
    case DeviceKind::cuda:
      return "cuda";
    case DeviceKind::emu:
      return "emu";
    case DeviceKind::sim:
      return "sim";
  }
  return "?";
}

Location Location::parse(std::string_view text) {
  Location location;
  std::string_view device = text;
  bool good = true;
  if (const auto slash = text.find('/'); slash != std::string_view::npos) {
    good = parse_number(text.substr(0, slash), location.rank);
    device = text.substr(slash + 1);
  }
  const auto colon = device.find(':');
  good = good && colon != std::string_view::npos && parse_number(device.substr(colon + 1), location.index);
  if (good) {
    for (const DeviceKind kind : all_kinds) {
      if (name_of(kind) == device.substr(0, colon)) {
        location.kind = kind;
        return location;
      }
    }
  }
  throw Error(
      "location", "'" + std::string(text) + "' is not a location",
      "write RANK/KIND:INDEX or KIND:INDEX, such as cpu:0 or 2/cuda:1; kinds are cpu, cuda, emu, sim");
}

std::string Location::text() const {
  return std::to_string(rank) + "/" + std::string(name_of(kind)) + ":" + std::to_string(index);
}

}  // namespace purine
