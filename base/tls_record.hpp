#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace elastic {

/// A checksum that makes it safe to wait for the length of a TLS record. A record begins with its
/// type, a version and its length, and TLS authenticates the length only once all the bytes are
/// there that it announces: after a flipped bit a reader would wait for bytes that are never sent.
/// The version of encrypted records says nothing, it is always 3.3. On the wire a checksum of the
/// length is in its place.
///
/// That finds damage. An attacker that forges a length can forge its checksum, and gains what
/// cutting the connection would bring.
class RecordLengths {
 public:
  /// CRC-16 (CCITT): different for lengths of which one becomes the other by a few flipped bits.
  static std::uint16_t checksum(std::uint16_t length);

  /// To be sent: puts the checksums into those records at the beginning of `bytes` that are whole,
  /// and returns how many bytes these are.
  static std::size_t mark(std::span<std::byte> bytes);

  /// Received, in pieces of any size, each once and in order: puts the versions back. False from
  /// the first length on that is not as it was sent.
  bool restore(std::span<std::byte> bytes);
  bool damaged() const { return damaged_; }

 private:
  static constexpr std::size_t kHeaderBytes = 5;

  std::array<std::byte, kHeaderBytes> header_{};
  std::size_t of_header_ = 0;  // so much of it has come
  std::size_t of_body_ = 0;    // so much of it has not
  bool damaged_ = false;
};

}  // namespace elastic
