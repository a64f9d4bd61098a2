#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collectives/kernels/store.hpp"

namespace elastic::transport {

/// How to write bytes that another core is about to read: by temporal stores, which go through the
/// caches, or by non-temporal ones, which go to memory. Where the two cores share a cache, the
/// bytes are written and read there several times as fast as through memory; where they share none,
/// each line has to be fetched from the other core first, which takes several times as long. The
/// system does not say which, and with virtual cores it changes from one second to the next. So it
/// is learnt from the duration of writes.
///
/// Non-temporal stores take about as long everywhere, and are the reference for temporal ones. They
/// are used until a try of temporal stores was quick; then these are, until they are slow several
/// times in a row. The memory is written again and again, lap by lap, and only its first bytes are
/// looked at: lines that were written by non-temporal stores have left the caches, and say nothing
/// before they have been through them for some laps. Tries come the less often the more of them
/// were slow.
class StorePolicy {
 public:
  /// Shorter writes use temporal stores, and tell nothing.
  static constexpr std::size_t kLeastBytes = std::size_t{16} << 10;
  /// The first bytes: few, so that a try costs little beside the rest of its lap.
  static constexpr std::size_t kFirstBytes = std::size_t{16} << 10;
  static constexpr std::size_t kLeastTimed = kFirstBytes / 2;
  /// Bytes between two tries of temporal stores, and of non-temporal ones.
  static constexpr std::size_t kLeastTryInterval = std::size_t{4} << 20;
  static constexpr std::size_t kMostTryInterval = std::size_t{64} << 20;
  static constexpr std::size_t kNonTemporalTryInterval = std::size_t{16} << 20;
  /// Laps of temporal stores before the first that counts.
  static constexpr int kWarmings = 2;
  /// Reading takes so much longer after non-temporal stores that temporal ones may take this many
  /// times as long.
  static constexpr double kSlow = 1.75;
  /// Laps that decide. A thread that lost its core in the middle of one says nothing about caches.
  static constexpr int kQuickLaps = 3;
  static constexpr int kSlowLaps = 2;

  struct Piece {
    kernels::Store store = kernels::Store::kTemporal;
    std::size_t bytes = 0;
    bool timed = false;  ///< `took` is to be told how long it took
  };

  /// How to write the next bytes, at least one, at offset `at`, and for how many of them this
  /// holds.
  Piece next(std::size_t at, std::size_t bytes) {
    if (bytes < kLeastBytes) return {kernels::Store::kTemporal, bytes, false};
    if (at >= kFirstBytes) {
      since_try_ += bytes;
      return {used(), bytes, false};
    }
    const std::size_t now = std::min(bytes, kFirstBytes - at);
    since_try_ += now;
    return {trying() ? other() : used(), now, now >= kLeastTimed};
  }

  /// Writing it took so long, in ticks of whatever unit.
  void took(const Piece& piece, std::int64_t ticks) {
    const double cost =
        static_cast<double>(std::max<std::int64_t>(ticks, 1)) / static_cast<double>(piece.bytes);
    if (piece.store == kernels::Store::kNonTemporal) {
      note_non_temporal(cost);
      warm_ = 0;
      if (uses_temporal_) since_try_ = 0;
    } else if (warm_ < kWarmings) {
      ++warm_;
    } else if (cost > kSlow * non_temporal_cost_) {
      slow();
    } else {
      quick();
    }
  }

 private:
  kernels::Store used() const {
    return uses_temporal_ ? kernels::Store::kTemporal : kernels::Store::kNonTemporal;
  }
  kernels::Store other() const {
    return uses_temporal_ ? kernels::Store::kNonTemporal : kernels::Store::kTemporal;
  }
  /// A try is one lap of non-temporal stores, or as many laps of temporal ones as it takes to see.
  bool trying() const { return since_try_ >= try_interval_; }

  /// Much can make a piece slow, such as memory that is touched for the first time; nothing quick.
  void note_non_temporal(double cost) {
    if (non_temporal_cost_ == 0) non_temporal_cost_ = cost;
    const double least = std::min(cost, 2 * non_temporal_cost_);
    non_temporal_cost_ += (least - non_temporal_cost_) / (least < non_temporal_cost_ ? 2 : 8);
  }

  void quick() {
    ++quick_;
    if (uses_temporal_) slow_ = 0;
    if (!uses_temporal_ && quick_ == kQuickLaps) turn(true, kNonTemporalTryInterval);
  }

  void slow() {
    ++slow_;
    if (uses_temporal_ && slow_ == kSlowLaps) turn(false, kLeastTryInterval);
    if (!uses_temporal_ && slow_ == kSlowLaps)
      turn(false, std::min(2 * try_interval_, kMostTryInterval));
  }

  void turn(bool uses_temporal, std::size_t try_interval) {
    uses_temporal_ = uses_temporal;
    try_interval_ = try_interval;
    since_try_ = 0;
    quick_ = 0;
    slow_ = 0;
  }

  bool uses_temporal_ = false;    // temporal stores are in use
  double non_temporal_cost_ = 0;  // ticks per byte, smoothed
  std::size_t try_interval_ = kLeastTryInterval;
  std::size_t since_try_ = 0;  // bytes
  int warm_ = 0;               // laps of temporal stores in a row, up to kWarmings
  int quick_ = 0;              // of the laps that count, in this try
  int slow_ = 0;               // of the laps that count; or in a row, of the stores in use
};

}  // namespace elastic::transport
