#include "base/host_identity.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/un.h>

#include "base/unique_fd.hpp"

namespace elastic {

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string host_identity() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, boot);
  std::array<char, 128> space{};
  const ssize_t length = ::readlink("/proc/self/ns/net", space.data(), space.size() - 1);
  return host_name() + "/" + boot + "/" +
         std::string(space.data(), length > 0 ? static_cast<std::size_t>(length) : 0) + "/" +
         std::to_string(::getuid());
}

bool has_no_listener(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The first byte stays zero: the name is abstract.
  if (name.empty() || name.size() >= sizeof address.sun_path) return false;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return false;
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace elastic
