#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "base/status.hpp"

namespace elastic::device {

/// Lends blocks of memory that takes long to get, and keeps those that come back for the next: a
/// training loop gets memory in its first step only. Its memory is freed with the pool.
///
/// Any thread. Not moved, and longer-lived than its blocks.
class BlockPool {
 public:
  using Get = std::function<Result<std::byte*>(std::size_t bytes)>;
  using GiveBack = std::function<void(std::byte* memory)>;

  /// Goes back to its pool in the end.
  class Block {
   public:
    Block() = default;
    Block(BlockPool* pool, std::size_t size, std::byte* memory)
        : pool_(pool), size_(size), memory_(memory) {}
    Block(Block&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), size_(other.size_), memory_(other.memory_) {}
    Block& operator=(Block&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(size_, other.size_);
      std::swap(memory_, other.memory_);
      return *this;
    }
    ~Block() {
      if (pool_ != nullptr) pool_->reclaim(size_, memory_);
    }

    std::byte* data() const { return memory_; }
    std::size_t size() const { return size_; }

   private:
    BlockPool* pool_ = nullptr;
    std::size_t size_ = 0;
    std::byte* memory_ = nullptr;
  };

  /// The fate of spare blocks when `get` fails: they are given back before it is tried once more,
  /// or kept, because something else may still refer to their addresses.
  enum class Spare : std::uint8_t { kGivenBack, kKept };

  BlockPool(Get get, GiveBack give_back, Spare spare = Spare::kGivenBack)
      : get_(std::move(get)), give_back_(std::move(give_back)), spare_when_short_(spare) {}
  ~BlockPool() { clear(); }
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// A block of at least so many bytes; fails as `get` does, if spare blocks do not help (Spare).
  /// For 0 bytes it is empty.
  Result<Block> lend(std::size_t bytes) { return lend(bytes, spare_when_short_); }
  Result<Block> lend(std::size_t bytes, Spare when_short);
  /// Gives back all that is not lent.
  /// \returns whether there was any.
  bool clear();

  /// How large the block for so many bytes is: few sizes, so that blocks fit again, and at most a
  /// quarter more than was asked for, from 512 KiB on.
  static std::size_t size_for(std::size_t bytes);

 private:
  void reclaim(std::size_t size, std::byte* memory);

  const Get get_;
  const GiveBack give_back_;
  const Spare spare_when_short_;
  Mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> spare_ ELASTIC_GUARDED_BY(mutex_);  // by size
};

}  // namespace elastic::device
