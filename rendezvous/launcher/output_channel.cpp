#include "rendezvous/launcher/output_channel.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <sys/ioctl.h>

namespace elastic::launcher {

namespace {

Status unavailable(const char* what) {
  const bool too_few = errno == EMFILE;
  return Status(Code::kUnavailable, std::string(what) + ": " + std::strerror(errno) +
                                        (too_few ? ": raise the limit of descriptors "
                                                   "(ulimit -Hn)"
                                                 : ""));
}

}  // namespace

Result<OutputChannel> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return unavailable("pipe");
  return OutputChannel{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<OutputChannel> make_terminal() {
  constexpr int kFlags = O_RDWR | O_NOCTTY | O_CLOEXEC;
  OutputChannel channel;
  channel.read_end.reset(::posix_openpt(kFlags));
  if (!channel.read_end) return unavailable("/dev/ptmx");
  if (::unlockpt(channel.read_end.get()) != 0) return unavailable("unlockpt");
  // By its descriptor: /dev/pts may be of another mount namespace.
  channel.write_end.reset(::ioctl(channel.read_end.get(), TIOCGPTPEER, kFlags));
  if (!channel.write_end) return unavailable("TIOCGPTPEER");
  termios modes{};
  if (::tcgetattr(channel.write_end.get(), &modes) != 0) return unavailable("tcgetattr");
  ::cfmakeraw(&modes);
  if (::tcsetattr(channel.write_end.get(), TCSANOW, &modes) != 0) return unavailable("tcsetattr");
  return channel;
}

}  // namespace elastic::launcher
