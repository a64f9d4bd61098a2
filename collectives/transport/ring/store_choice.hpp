#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collectives/kernels/store.hpp"

namespace elastic::transport {

/// How to write what another core is about to read: through the caches, or past them. Where the two
/// cores share a cache, it is written and read there several times as fast as through memory; where
/// they share none, each line has to be fetched from the other core first, which takes several
/// times as long. Which of them it is nobody says, and where cores are virtual it changes from one
/// second to the next. So it is learnt from how long the writing takes.
///
/// Writing past the caches takes about as long everywhere, and is what the other way is held
/// against. It is used until writes through the caches have been quick several times in a row; then
/// those are, until they are slow. Whatever is not used is tried with a small piece now and then:
/// through the caches the less often the more often it was slow.
class StoreChoice {
 public:
  /// What is shorter goes through the caches, and tells nothing.
  static constexpr std::size_t kLeastBytes = std::size_t{16} << 10;
  /// What a try costs is little beside what is written between two of them.
  static constexpr std::size_t kTryBytes = std::size_t{16} << 10;
  static constexpr std::size_t kFirstApart = std::size_t{1} << 20;
  static constexpr std::size_t kLastApart = std::size_t{64} << 20;
  /// Reading takes so much longer past the caches, too, that writing through them may take this
  /// many times as long.
  static constexpr double kSlow = 1.75;
  /// A thread that lost its core in the middle of a piece says nothing about caches.
  static constexpr int kInARow = 3;

  struct Piece {
    kernels::Store store = kernels::Store::kCached;
    std::size_t bytes = 0;
  };

  /// How to write the first of these bytes, of which there is at least one, and how many of them.
  Piece next(std::size_t bytes) const {
    if (bytes < kLeastBytes) return {kernels::Store::kCached, bytes};
    if (!trying()) return {used(), bytes};
    // No remainder that would be too short to tell anything.
    return {tried(), bytes < kTryBytes + kLeastBytes ? bytes : kTryBytes};
  }

  /// Writing it, of kLeastBytes or more, took so long, in ticks of whatever unit.
  void took(const Piece& piece, std::int64_t ticks) {
    const double cost =
        static_cast<double>(std::max<std::int64_t>(ticks, 1)) / static_cast<double>(piece.bytes);
    if (piece.store == kernels::Store::kStreaming) {
      streamed(cost);
    } else {
      cached(cost > kSlow * streaming_cost_);
    }
    since_try_ = piece.store == used() ? since_try_ + piece.bytes : 0;
  }

 private:
  kernels::Store used() const {
    return through_ ? kernels::Store::kCached : kernels::Store::kStreaming;
  }
  kernels::Store tried() const {
    return through_ ? kernels::Store::kStreaming : kernels::Store::kCached;
  }
  /// A try that was quick is repeated at once.
  bool trying() const {
    if (streaming_cost_ == 0) return false;
    return since_try_ >= (through_ ? kFirstApart : apart_) || (!through_ && in_a_row_ > 0);
  }

  /// Much can make a piece slow, such as memory that is touched for the first time; nothing quick.
  void streamed(double cost) {
    if (streaming_cost_ == 0) streaming_cost_ = cost;
    const double least = std::min(cost, 2 * streaming_cost_);
    streaming_cost_ += (least - streaming_cost_) / (least < streaming_cost_ ? 2 : 8);
  }

  /// In a row are tries that were quick, or pieces in use that were slow.
  void cached(bool slow) {
    in_a_row_ = slow == through_ ? in_a_row_ + 1 : 0;
    if (in_a_row_ == kInARow) {
      through_ = !through_;
      in_a_row_ = 0;
      apart_ = kFirstApart;
    } else if (!through_ && slow) {
      apart_ = std::min(2 * apart_, kLastApart);
    }
  }

  bool through_ = false;           // the caches is what is in use
  double streaming_cost_ = 0;      // ticks per byte, smoothed; 0: not known yet
  std::size_t since_try_ = 0;      // bytes written since the last try
  std::size_t apart_ = kTryBytes;  // bytes between tries through the caches: one very soon
  int in_a_row_ = 0;
};

}  // namespace elastic::transport
