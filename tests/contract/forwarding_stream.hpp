#pragma once

#include <utility>

#include "collectives/transport/stream.hpp"

namespace elastic::transport {

/// A stream over another one: tests derive from it and look at what passes.
class ForwardingStream : public Stream {
 public:
  explicit ForwardingStream(StreamPtr inner) : inner_(std::move(inner)) {}

  Result<std::size_t> write(std::span<const std::span<const std::byte>> parts) override {
    return inner_->write(parts);
  }
  Result<std::size_t> read(std::span<std::byte> into) override { return inner_->read(into); }
  Result<std::span<const std::byte>> peek(std::size_t at_least) override {
    return inner_->peek(at_least);
  }
  void consume(std::size_t bytes) override { inner_->consume(bytes); }
  int fd() const override { return inner_->fd(); }
  bool prepare_wait(bool want_read, bool want_write, short& events) override {
    return inner_->prepare_wait(want_read, want_write, events);
  }
  void finish_wait() override { inner_->finish_wait(); }
  bool peer_gone() const override { return inner_->peer_gone(); }
  Result<bool> look(TimePoint now) override { return inner_->look(now); }
  bool needs_checksum() const override { return inner_->needs_checksum(); }
  const char* transport() const override { return inner_->transport(); }

 private:
  const StreamPtr inner_;
};

}  // namespace elastic::transport
