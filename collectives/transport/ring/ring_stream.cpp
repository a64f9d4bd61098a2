#include "collectives/transport/ring/ring_stream.hpp"

#include <algorithm>
#include <cstring>
#include <poll.h>
#include <utility>

namespace elastic::transport {

namespace {

Status damaged() {
  return Status(Code::kProtocol, "shared memory is damaged: the peer's cursor is out of range");
}

/// The peer is told of so much at a time: every look at a cursor that moves costs both sides.
constexpr std::size_t kPublishBytes = 256 * 1024;

}  // namespace

RingStream::RingStream(std::shared_ptr<RingMemory> memory, bool first, UniqueFd doorbell,
                       const char* transport, std::unique_ptr<ArenaView> arena)
    : memory_(std::move(memory)),
      transport_(transport),
      doorbell_(std::move(doorbell)),
      out_(memory_->control(first ? 0 : 1)),
      in_(memory_->control(first ? 1 : 0)),
      out_data_(memory_->data(first ? 0 : 1)),
      in_data_(memory_->data(first ? 1 : 0)),
      size_(memory_->ring_bytes()),
      eager_channel_(memory_->slots(first ? 0 : 1), memory_->slots(first ? 1 : 0),
                     out_.reader_sleeps, doorbell_),
      arena_(std::move(arena)) {}

Status RingStream::gone() const {
  return Status(Code::kPeerLost, "the peer's process is gone");
}

Result<std::size_t> RingStream::writable() {
  if (out_written_ - out_taken_ == size_) {
    out_taken_ = out_.taken.load(std::memory_order_acquire);
    if (out_written_ - out_taken_ > size_) return damaged();
  }
  return size_ - static_cast<std::size_t>(out_written_ - out_taken_);
}

Result<std::size_t> RingStream::write(std::span<const std::span<const std::byte>> parts) {
  if (peer_gone_) return gone();
  std::size_t total = 0;
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      Result<std::size_t> room = writable();
      if (!room.ok()) return room;
      const std::size_t now = std::min({room.value(), part.size(), kPublishBytes});
      if (now == 0) break;
      writer_.copy({out_data_, size_}, out_written_ % size_, part.data(), now);
      out_written_ += now;
      total += now;
      part = part.subspan(now);
      // The reader copies out while we copy in; but a header alone is not worth waking it for.
      if (now == kPublishBytes) publish();
    }
    if (!part.empty()) break;
  }
  if (total > 0) publish();
  return total;
}

void RingStream::publish() {
  out_.written.store(out_written_, std::memory_order_release);
  doorbell_.ring_if(out_.reader_sleeps);
}

Result<std::size_t> RingStream::readable() {
  in_written_ = in_.written.load(std::memory_order_acquire);
  if (in_written_ - in_taken_ > size_) return damaged();
  return static_cast<std::size_t>(in_written_ - in_taken_);
}

Result<std::span<const std::byte>> RingStream::peek(std::size_t at_least) {
  Result<std::size_t> available = readable();
  if (!available.ok()) return available.status();
  if (available.value() < at_least) {
    if (peer_gone_) return gone();
    return std::span<const std::byte>();
  }
  return std::span(in_data_ + in_taken_ % size_, available.value());
}

void RingStream::consume(std::size_t bytes) {
  in_taken_ += bytes;
  in_.taken.store(in_taken_, std::memory_order_release);
  // A writer that waits for room is woken for a good piece of it, not for every few bytes. A reader
  // that waits for more (of at most kPeekLimit) always leaves that much room.
  static_assert(RingMemory::kLeastRingBytes >= 4 * kPeekLimit);
  const std::size_t room = size_ - static_cast<std::size_t>(in_written_ - in_taken_);
  if (room >= size_ / 4) doorbell_.ring_if(in_.writer_sleeps);
}

Result<std::size_t> RingStream::read(std::span<std::byte> into) {
  Result<std::size_t> available = readable();
  if (!available.ok()) return available;
  if (available.value() == 0 && peer_gone_) return gone();
  const std::size_t now = std::min(available.value(), into.size());
  if (now > 0) {
    std::memcpy(into.data(), in_data_ + in_taken_ % size_, now);
    consume(now);
  }
  return now;
}

bool RingStream::prepare_wait(bool want_read, bool want_write, short& events) {
  events = POLLIN;
  if (want_read) in_.reader_sleeps.store(1, std::memory_order_seq_cst);
  if (want_write) out_.writer_sleeps.store(1, std::memory_order_seq_cst);
  // Data that came before the flags were up rang no bell.
  if (want_read && in_.written.load(std::memory_order_seq_cst) != in_written_) return false;
  if (want_read && eager_channel_.arrived()) return false;
  return !want_write || out_.taken.load(std::memory_order_seq_cst) == out_taken_;
}

void RingStream::finish_wait() {
  in_.reader_sleeps.store(0, std::memory_order_relaxed);
  out_.writer_sleeps.store(0, std::memory_order_relaxed);
  if (!doorbell_.silence()) peer_gone_ = true;
}

}  // namespace elastic::transport
