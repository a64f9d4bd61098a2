#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/transport/link.hpp"
#include "stream_wirings.hpp"

namespace elastic::transport {

using ByteVector = std::vector<std::byte>;

/// `bytes` bytes that differ for every `seed`.
ByteVector pattern(std::size_t bytes, std::uint64_t seed);
std::span<const std::byte> as_payload(std::string_view text);

std::string wiring_name(const testing::TestParamInfo<StreamWiring>& info);

/// The call that most tests make.
constexpr Fingerprint kCall{1, 2, 0, 1, 0, 1024};
constexpr OpTag tag_at(std::uint64_t position, std::uint64_t generation = 1) {
  return {generation, position, OpTag::kNormal};
}

/// Adds up `elements` 32-bit integers.
void add_i32(std::byte* into, const std::byte* left, const std::byte* right, std::size_t elements);
/// Writes a frame of the first operation to the bare end, as no link would perhaps.
void write_frame(Stream& stream, std::uint32_t message, std::uint64_t offset,
                 const ByteVector& payload);

/// The contract of a link over every transport. Both ends live in the test's thread and are moved
/// in turns, so that every interleaving is the same in every run, as far as the kernel allows.
class TransportContract : public testing::TestWithParam<StreamWiring> {
 protected:
  void SetUp() override;

  /// Connects two links.
  void connect();
  /// Connects a link at the near end with bare streams at the far end.
  void connect_bare();
  void begin_both(const OpTag& tag);
  /// A message of so many bytes in each direction at once, from the beginning of operation `tag`.
  void pass_each_other(const OpTag& tag, std::size_t bytes);

  /// Moves both ends until `done`. The first failure of either; kTimeout when nothing comes of it.
  Status pump(const std::function<bool()>& done);
  /// Moves both ends until the far one has a note for `generation`; nothing when none comes.
  std::optional<ByteVector> note_at_far(std::uint64_t generation);
  /// Waits until a link shows that the other end has hung up, which takes the network its time;
  /// false when it does not.
  static bool sees_the_end(const Link& link);
  /// Moves the near end until it fails; kTimeout if it does not.
  Status failure_of_near();
  /// Moves both ends until nothing moves for a while: for what must not happen.
  void pump_until_idle();

  std::unique_ptr<Link> near_;
  std::unique_ptr<Link> far_;
  std::vector<StreamPtr> bare_;
};

}  // namespace elastic::transport
