#include "rendezvous/launcher/starter_watch.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace elastic::launcher {

StarterWatch::StarterWatch(boost::asio::io_context& io, std::function<void()> on_gone)
    : input_(io, ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)), on_gone_(std::move(on_gone)) {
  wait();
}

void StarterWatch::wait() {
  input_.async_wait(
      boost::asio::posix::stream_descriptor::wait_read, [this](boost::system::error_code error) {
        if (error) return;
        std::array<char, 256> ignored{};
        const ssize_t got = ::read(input_.native_handle(), ignored.data(), ignored.size());
        if (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN))) {
          return wait();
        }
        on_gone_();
      });
}

}  // namespace elastic::launcher
