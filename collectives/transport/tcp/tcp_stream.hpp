#pragma once

#include <cstddef>
#include <vector>

#include "base/unique_fd.hpp"
#include "collectives/transport/stream.hpp"
#include "collectives/transport/tcp/silence_watch.hpp"

namespace elastic::transport {

/// A stream over a connected TCP socket, IPv4 or IPv6.
class TcpStream : public Stream {
 public:
  /// Makes the socket non-blocking and sets its options. `link_timeout` is how long the way to the
  /// peer may be silent.
  explicit TcpStream(UniqueFd socket, Milliseconds link_timeout = kDefaultLinkTimeout);

  Result<std::size_t> write(std::span<const std::span<const std::byte>> parts) override;
  Result<std::size_t> read(std::span<std::byte> into) override;
  Result<std::span<const std::byte>> peek(std::size_t at_least) override;
  void consume(std::size_t bytes) override { begin_ += bytes; }
  int fd() const override { return socket_.get(); }
  bool prepare_wait(bool want_read, bool want_write, short& events) override;
  void finish_wait() override;
  bool peer_gone() const override { return peer_gone_; }
  Result<bool> look(TimePoint now) override { return silence_.look(socket_.get(), now); }
  bool needs_checksum() const override { return true; }
  const char* transport() const override { return "tcp"; }

 private:
  std::size_t buffered() const { return end_ - begin_; }
  /// Takes what has arrived at the socket, like `read`.
  virtual Result<std::size_t> receive(std::span<std::byte> into);

  UniqueFd socket_;
  SilenceWatch silence_;
  std::vector<std::byte> buffer_;  // received, not taken: [begin_, end_)
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool reads_nothing_ = false;  // sleeping without wanting to read
  bool peer_gone_ = false;
};

}  // namespace elastic::transport
