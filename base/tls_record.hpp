#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace elastic {

/// A checksum that makes it safe to wait for the length of a TLS record. A record begins with its
/// type, a version and its length. TLS authenticates the length only once all the bytes that it
/// announces are there: after a flipped bit a reader would wait for bytes that are never sent. The
/// version of encrypted records is always 3.3, so on the wire a checksum of the length takes its
/// place.
///
/// The checksum finds damage, not forgery. An attacker that forges a length can forge its checksum,
/// but gains no more than by cutting the connection.
class RecordLengths {
 public:
  /// CRC-16 (CCITT): different for lengths of which one becomes the other by a few flipped bits.
  static std::uint16_t checksum(std::uint16_t length);

  /// For bytes to send: puts the checksums into the whole records at the beginning of `bytes`.
  /// \returns the number of bytes in these records.
  static std::size_t mark(std::span<std::byte> bytes);

  /// For received bytes, in pieces of any size, each once and in order: checks the checksums and
  /// puts the versions back. False from the first damaged length on.
  bool restore(std::span<std::byte> bytes);
  bool damaged() const { return damaged_; }

 private:
  static constexpr std::size_t kHeaderBytes = 5;

  std::array<std::byte, kHeaderBytes> header_{};
  std::size_t of_header_ = 0;  // bytes of the header that have arrived
  std::size_t of_body_ = 0;    // bytes of the body that are missing
  bool damaged_ = false;
};

}  // namespace elastic
