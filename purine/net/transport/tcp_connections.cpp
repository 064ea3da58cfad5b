#include "purine/net/transport/tcp_connections.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <string>
#include <system_error>

namespace purine::net {
namespace {

bool is_tcp_connection(int descriptor) {
  int protocol = 0;
  socklen_t size = sizeof(protocol);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) return false;
  sockaddr_storage peer{};
  socklen_t peer_size = sizeof(peer);
  return protocol == IPPROTO_TCP &&
         ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0;
}

}  // namespace

int bound_unsent_bytes(std::size_t bytes) {
  const int bound = static_cast<int>(std::min<std::size_t>(bytes, std::numeric_limits<int>::max()));
  int connections = 0;
  std::error_code none;  // without this folder there is nothing to bound
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none)) {
    const std::string name = entry.path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (!is_tcp_connection(descriptor)) continue;
    if (::setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bound, sizeof(bound)) == 0) ++connections;
  }
  return connections;
}

}  // namespace purine::net
