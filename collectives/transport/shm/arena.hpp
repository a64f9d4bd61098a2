#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unistd.h>
#include <utility>

#include "base/mutex.hpp"
#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::transport {

/// Memory of this worker that the others of its host can read in place: an anonymous file that
/// never shrinks, of which they are passed the descriptor. It has no name, and is gone with the
/// last process that maps it. Until the first `allocate` it is a descriptor and nothing else.
///
/// Any thread.
class Arena {
 public:
  static Result<std::shared_ptr<Arena>> create();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// `bytes` > 0 of zeros, which have their pages already: so that there is an error here where
  /// memory runs out, and none later. Starts on a page; what is large, on 2 MiB. kUnavailable.
  Result<std::byte*> allocate(std::size_t bytes);
  /// Gives back what `allocate` returned for as many bytes. The kernel has its pages at once.
  /// Nothing in a child of fork(2).
  void free(std::byte* memory, std::size_t bytes) noexcept;

  /// Where these bytes lie in the file, if they are the arena's.
  std::optional<std::uint64_t> offset_of(const std::byte* memory, std::size_t bytes) const;

  /// Others cannot be read here, so that the arena is nothing but memory from now on.
  void stop_sharing() { shares_.store(false, std::memory_order_relaxed); }
  bool shares() const { return shares_.load(std::memory_order_relaxed); }

  int fd() const { return file_.get(); }

 private:
  explicit Arena(UniqueFd file) : file_(std::move(file)) {}
  Status reserve() ELASTIC_REQUIRES(mutex_);
  std::optional<std::size_t> take(std::size_t bytes, std::size_t alignment)
      ELASTIC_REQUIRES(mutex_);
  void give_back(std::size_t offset, std::size_t bytes) ELASTIC_REQUIRES(mutex_);
  Status provide(std::size_t offset, std::size_t bytes) ELASTIC_REQUIRES(mutex_);

  const UniqueFd file_;
  const pid_t process_ = ::getpid();
  std::atomic<bool> shares_{true};
  std::atomic<std::byte*> base_{nullptr};  // stays once it is set, as does reserved_
  std::size_t reserved_ = 0;

  Mutex mutex_;
  std::size_t file_bytes_ ELASTIC_GUARDED_BY(mutex_) = 0;
  /// Offset, bytes; no two of them touch.
  std::map<std::size_t, std::size_t> free_ ELASTIC_GUARDED_BY(mutex_);
};

/// The arena of another worker of this host, for reading. Whatever that worker does, reading what
/// `reach` has allowed is safe, though it need not make sense: the file cannot shrink, and stays
/// when the worker dies.
///
/// Owned by the thread that owns the link.
class ArenaView {
 public:
  /// kProtocol where the file could shrink.
  static Result<std::unique_ptr<ArenaView>> open(UniqueFd file);
  ~ArenaView();
  ArenaView(const ArenaView&) = delete;
  ArenaView& operator=(const ArenaView&) = delete;

  /// Makes these bytes readable. kProtocol where the file does not have them; kUnavailable where
  /// they cannot be mapped. May move `data()`.
  Status reach(std::uint64_t offset, std::uint64_t bytes);
  const std::byte* data() const { return data_; }

 private:
  explicit ArenaView(UniqueFd file) : file_(std::move(file)) {}

  const UniqueFd file_;
  std::byte* data_ = nullptr;
  std::size_t mapped_ = 0;
};

}  // namespace elastic::transport
