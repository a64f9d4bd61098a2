#include "collectives/transport/tcp/tcp_stream.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

namespace elastic::transport {

namespace {

/// For what a reduction takes from where it was received. A stream that has only brought headers
/// and payloads to where they belong has none of this size: there are many streams in a large job.
constexpr std::size_t kBufferBytes = 256 * 1024;
/// Looking for a frame header takes little more than the header: a large payload behind it is
/// better received where it belongs. Small messages still arrive whole with their header.
constexpr std::size_t kHeaderReadBytes = 4096;
constexpr std::size_t kHeaderLike = 64;

Status lost(int error) {
  return Status(Code::kPeerLost,
                error == 0 ? "the peer closed the connection"
                           : std::string("the connection broke: ") + std::strerror(error));
}

/// sendmsg(2). ThreadSanitizer's own takes the memory for read when the call returns. By then the
/// bytes may have gone round the other ranks, and another thread may have received what they led to
/// (FlowThreads); it sees the reading by the checksum before.
ssize_t send_message(int socket, const msghdr& message) {
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
#if defined(__SANITIZE_THREAD__)
  return ::syscall(SYS_sendmsg, socket, &message, kFlags);
#else
  return ::sendmsg(socket, &message, kFlags);
#endif
}

}  // namespace

TcpStream::TcpStream(UniqueFd socket, Milliseconds link_timeout)
    : socket_(std::move(socket)), silence_(link_timeout) {
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  keep_alive(socket_.get());
}

Result<std::size_t> TcpStream::write(std::span<const std::span<const std::byte>> parts) {
  std::array<iovec, 4> vector;
  std::size_t used = 0;
  for (const auto part : parts) {
    if (part.empty() || used == vector.size()) continue;
    vector[used++] = {const_cast<std::byte*>(part.data()), part.size()};
  }
  msghdr message{};
  message.msg_iov = vector.data();
  message.msg_iovlen = used;
  for (;;) {
    const ssize_t sent = send_message(socket_.get(), message);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EAGAIN) return std::size_t{0};
    if (errno != EINTR) return lost(errno);
  }
}

Result<std::size_t> TcpStream::receive(std::span<std::byte> into) {
  for (;;) {
    const ssize_t got = ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0) return lost(0);
    if (errno == EAGAIN) return std::size_t{0};
    if (errno != EINTR) return lost(errno);
  }
}

Result<std::size_t> TcpStream::read(std::span<std::byte> into) {
  if (into.empty()) return std::size_t{0};
  if (buffered() == 0) return receive(into);
  const std::size_t now = std::min(buffered(), into.size());
  std::memcpy(into.data(), buffer_.data() + begin_, now);
  begin_ += now;
  return now;
}

Result<std::span<const std::byte>> TcpStream::peek(std::size_t at_least) {
  if (buffered() < at_least) {
    if (buffered() > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, buffered());
    end_ = buffered();
    begin_ = 0;
    const std::size_t limit = at_least <= kHeaderLike ? kHeaderReadBytes : kBufferBytes;
    if (buffer_.size() < limit) buffer_.resize(limit);
    Result<std::size_t> got = receive(std::span(buffer_).subspan(end_, limit - end_));
    if (!got.ok()) return got.status();
    end_ += got.value();
    if (buffered() < at_least) return std::span<const std::byte>();
  }
  return std::span<const std::byte>(buffer_).subspan(begin_, buffered());
}

bool TcpStream::prepare_wait(bool want_read, bool want_write, short& events) {
  // The buffer has too little to go on with, or the link would have taken it.
  reads_nothing_ = !want_read;
  events = static_cast<short>((want_read ? POLLIN : POLLRDHUP) | (want_write ? POLLOUT : 0));
  return true;
}

void TcpStream::finish_wait() {
  // A reader finds the end of the stream by itself.
  if (!reads_nothing_) return;
  reads_nothing_ = false;
  pollfd end{socket_.get(), POLLRDHUP, 0};
  if (::poll(&end, 1, 0) > 0) peer_gone_ = true;
}

}  // namespace elastic::transport
