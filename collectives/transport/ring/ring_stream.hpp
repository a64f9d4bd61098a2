#pragma once

#include <cstdint>
#include <memory>

#include "base/unique_fd.hpp"
#include "collectives/transport/ring/byte_ring.hpp"
#include "collectives/transport/ring/doorbell.hpp"
#include "collectives/transport/ring/eager_channel.hpp"
#include "collectives/transport/ring/peer_writer.hpp"
#include "collectives/transport/shared_memory_features.hpp"
#include "collectives/transport/shm/arena.hpp"
#include "collectives/transport/stream.hpp"

namespace elastic::transport {

/// A stream over two rings in memory that both ends map, with an eager channel beside it.
///
/// Checks everything that the peer writes to the control pages: cursors out of range are kProtocol.
class RingStream : public Stream, public SharedMemoryFeatures {
 public:
  /// The end that made the memory is `first`; it writes direction 0 and reads direction 1.
  /// `arena` is the peer's; null where it has none.
  RingStream(std::shared_ptr<RingMemory> memory, bool first, UniqueFd doorbell,
             const char* transport, std::unique_ptr<ArenaView> arena = nullptr);

  Result<std::size_t> write(std::span<const std::span<const std::byte>> parts) override;
  Result<std::size_t> read(std::span<std::byte> into) override;
  Result<std::span<const std::byte>> peek(std::size_t at_least) override;
  void consume(std::size_t bytes) override;
  int fd() const override { return doorbell_.fd(); }
  bool prepare_wait(bool want_read, bool want_write, short& events) override;
  void finish_wait() override;
  bool peer_gone() const override { return peer_gone_; }
  const char* transport() const override { return transport_; }
  EagerChannel& eager_channel() override { return eager_channel_; }
  ArenaView* arena() override { return arena_.get(); }
  std::size_t capacity() const override { return size_; }

 private:
  Result<std::size_t> readable();
  Result<std::size_t> writable();
  void publish();
  Status gone() const;

  std::shared_ptr<RingMemory> memory_;
  const char* transport_;
  Doorbell doorbell_;
  RingControl& out_;
  RingControl& in_;
  std::byte* out_data_;
  const std::byte* in_data_;
  const std::size_t size_;
  std::uint64_t out_written_ = 0;
  std::uint64_t out_taken_ = 0;   // as last seen
  std::uint64_t in_written_ = 0;  // as last seen
  std::uint64_t in_taken_ = 0;
  bool peer_gone_ = false;
  PeerWriter writer_;
  EagerChannel eager_channel_;
  const std::unique_ptr<ArenaView> arena_;
};

}  // namespace elastic::transport
