#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.hpp"
#include "base/unique_fd.hpp"
#include "collectives/transport/ring/eager_channel.hpp"

namespace elastic::transport {

/// The state that both ends of a ring share. Lies at the start of the shared memory. Each field
/// has a cache line of its own: the ends run on different cores.
struct RingControl {
  alignas(64) std::atomic<std::uint64_t> written{0};  ///< bytes ever written, by the writer
  alignas(64) std::atomic<std::uint64_t> taken{0};    ///< bytes ever taken, by the reader
  alignas(64) std::atomic<std::uint32_t> reader_sleeps{0};
  alignas(64) std::atomic<std::uint32_t> writer_sleeps{0};
};

/// Memory for two rings and the eager messages beside them, one of each per direction, in an
/// anonymous file that can be passed to another process. Nothing of it has a name: it is gone with
/// the last process that maps it.
class RingMemory {
 public:
  static constexpr std::size_t kLeastRingBytes = 16 * 1024;
  static constexpr std::size_t kMostRingBytes = std::size_t{1} << 30;

  /// The size of a file for rings of `ring_bytes`.
  static std::size_t file_bytes(std::size_t ring_bytes);

  /// `ring_bytes` per direction, rounded up to whole pages and at least kLeastRingBytes.
  static Result<std::shared_ptr<RingMemory>> create(std::size_t ring_bytes);
  /// Maps what `create` made elsewhere. Its size cannot change any more (sealed), or it is refused.
  static Result<std::shared_ptr<RingMemory>> open(UniqueFd file);
  ~RingMemory();

  int fd() const { return file_.get(); }
  /// Once `fd` is no longer needed.
  void close_file() { file_.reset(); }
  std::size_t ring_bytes() const { return ring_bytes_; }
  RingControl& control(int direction) { return *sides_[direction].control; }
  EagerSlots& slots(int direction) { return *sides_[direction].slots; }
  /// The ring's bytes, mapped twice one behind the other: whatever starts in the first half is
  /// contiguous.
  std::byte* data(int direction) { return sides_[direction].data; }

 private:
  struct Side {
    RingControl* control = nullptr;
    EagerSlots* slots = nullptr;
    std::byte* data = nullptr;
  };
  RingMemory(UniqueFd file, std::size_t ring_bytes);
  Status map();

  UniqueFd file_;
  std::size_t ring_bytes_;
  Side sides_[2];
};

}  // namespace elastic::transport
