#include "base/tls_record.hpp"

#include <algorithm>

namespace elastic {

namespace {

constexpr std::byte kEncrypted{23};  // the type; others are of TLS's handshake, in the clear
constexpr std::byte kVersion{3};     // both bytes of it
constexpr std::size_t kVersionAt = 1;
constexpr std::size_t kLengthAt = 3;

std::uint16_t word_at(std::span<const std::byte> header, std::size_t at) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(header[at]) << 8U |
                                    std::to_integer<unsigned>(header[at + 1]));
}

}  // namespace

std::uint16_t RecordLengths::checksum(std::uint16_t length) {
  unsigned rest = length ^ 0xffffU;
  for (int bit = 0; bit < 16; ++bit) {
    rest = (rest << 1U) ^ ((rest & 0x8000U) != 0 ? 0x1021U : 0U);
  }
  return static_cast<std::uint16_t>(rest);
}

std::size_t RecordLengths::mark(std::span<std::byte> bytes) {
  std::size_t marked = 0;
  while (bytes.size() - marked >= kHeaderBytes) {
    const std::span<std::byte> record = bytes.subspan(marked);
    const std::uint16_t length = word_at(record, kLengthAt);
    if (record.size() - kHeaderBytes < length) break;
    if (record[0] == kEncrypted) {
      const std::uint16_t check = checksum(length);
      record[kVersionAt] = static_cast<std::byte>(check >> 8U);
      record[kVersionAt + 1] = static_cast<std::byte>(check & 0xffU);
    }
    marked += kHeaderBytes + length;
  }
  return marked;
}

bool RecordLengths::restore(std::span<std::byte> bytes) {
  while (!bytes.empty() && !damaged_) {
    if (of_body_ > 0) {
      const std::size_t passed = std::min(of_body_, bytes.size());
      of_body_ -= passed;
      bytes = bytes.subspan(passed);
      continue;
    }
    header_.at(of_header_) = bytes.front();
    const bool encrypted = header_[0] == kEncrypted;
    if (encrypted && of_header_ >= kVersionAt && of_header_ < kLengthAt) bytes.front() = kVersion;
    bytes = bytes.subspan(1);
    if (++of_header_ < kHeaderBytes) continue;
    of_header_ = 0;
    of_body_ = word_at(header_, kLengthAt);
    damaged_ = encrypted && checksum(word_at(header_, kLengthAt)) != word_at(header_, kVersionAt);
  }
  return !damaged_;
}

}  // namespace elastic
