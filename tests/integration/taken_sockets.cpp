#include "integration/taken_sockets.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace elastic::testing {

namespace {

UniqueFd take(pid_t pid, int descriptor) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), descriptor, 0)));
}

struct Ports {
  int own = 0;
  int peer = 0;
};

/// The ports of a connection over IPv4; nothing for other descriptors.
std::optional<Ports> ports_of(const UniqueFd& fd) {
  sockaddr_in own{};
  sockaddr_in peer{};
  socklen_t own_bytes = sizeof own;
  socklen_t peer_bytes = sizeof peer;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &own_bytes) != 0 ||
      ::getpeername(fd.get(), reinterpret_cast<sockaddr*>(&peer), &peer_bytes) != 0 ||
      own.sin_family != AF_INET) {
    return std::nullopt;
  }
  return Ports{ntohs(own.sin_port), ntohs(peer.sin_port)};
}

}  // namespace

TakenSockets TakenSockets::of(pid_t elasticrun, int server_port) {
  std::vector<std::pair<Ports, UniqueFd>> connections;
  const auto folder = "/proc/" + std::to_string(elasticrun) + "/fd";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    UniqueFd fd = take(elasticrun, std::atoi(entry.path().filename().c_str()));
    const auto ports = fd ? ports_of(fd) : std::nullopt;
    if (ports) connections.emplace_back(*ports, std::move(fd));
  }
  TakenSockets taken;
  int launcher_port = 0;
  for (auto& [ports, fd] : connections) {
    if (ports.peer != server_port) continue;
    launcher_port = ports.own;
    taken.launcher = std::move(fd);
  }
  for (auto& [ports, fd] : connections) {
    if (ports.own == server_port && ports.peer == launcher_port) taken.server = std::move(fd);
  }
  return taken;
}

bool may_take_sockets_of(pid_t child) {
  return static_cast<bool>(take(child, STDERR_FILENO));
}

}  // namespace elastic::testing
