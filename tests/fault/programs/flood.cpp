// fault_flood COUNT DOOR...: another user of the machine, which holds COUNT silent connections to
// each door ("tcp:PORT" on loopback, "local:NAME" of an abstract socket) and connects again when
// one is closed, until it is killed. Says "floods" once it has tried to connect to all doors.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fault/programs/tell.hpp"

namespace {

constexpr uid_t kUnprivilegedUser = 65534;
/// Between two looks at which connections were closed.
constexpr std::chrono::milliseconds kPause{100};

class Door {
 public:
  explicit Door(const std::string& name) {
    const std::string what = name.substr(name.find(':') + 1);
    if (name.starts_with("tcp:")) {
      sockaddr_in tcp{};
      tcp.sin_family = AF_INET;
      tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      tcp.sin_port = htons(static_cast<std::uint16_t>(std::stoi(what)));
      set(tcp, sizeof tcp);
    } else {
      sockaddr_un local{};
      local.sun_family = AF_UNIX;
      std::copy(what.begin(), what.end(), local.sun_path + 1);
      set(local, offsetof(sockaddr_un, sun_path) + 1 + what.size());
    }
  }

  void hold(std::size_t count) {
    std::erase_if(held_, [](int fd) {
      char byte = 0;
      const bool open =
          ::recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == ENOTCONN);
      if (!open) ::close(fd);
      return !open;
    });
    while (held_.size() < count && connect()) {
    }
  }

 private:
  template <typename Address>
  void set(const Address& address, std::size_t length) {
    std::memcpy(&address_, &address, sizeof address);
    length_ = static_cast<socklen_t>(length);
  }
  /// False where the door takes no more for now.
  bool connect() {
    const int fd = ::socket(address_.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address_), length_) != 0 &&
        errno != EINPROGRESS) {
      ::close(fd);
      return false;
    }
    held_.push_back(fd);
    return true;
  }

  sockaddr_storage address_{};
  socklen_t length_ = 0;
  std::vector<int> held_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto count = static_cast<std::size_t>(argc > 2 ? std::atoi(argv[1]) : 0);
  if (count == 0) {
    std::fprintf(stderr, "usage: fault_flood COUNT DOOR...\n");
    return 2;
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (::geteuid() == 0 && ::setuid(kUnprivilegedUser) != 0) return 3;
  std::vector<Door> doors(argv + 2, argv + argc);
  for (bool first = true;; first = false) {
    for (Door& door : doors) door.hold(count);
    if (first) elastic::fault::tell("floods");
    std::this_thread::sleep_for(kPause);
  }
}
