#include "fault/wire.hpp"

#include <array>
#include <poll.h>
#include <unistd.h>

namespace elastic::testing {

namespace {

constexpr std::size_t kEthernetHeader = 14;
constexpr std::size_t kLongestFrame = 2048;
/// Shorter segments are not bulk data.
constexpr std::size_t kLarge = 400;

std::uint32_t word_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  return static_cast<std::uint32_t>(bytes[at] << 8U | bytes[at + 1]);
}
void set_word(std::span<std::uint8_t> bytes, std::size_t at, std::uint32_t word) {
  bytes[at] = static_cast<std::uint8_t>(word >> 8U);
  bytes[at + 1] = static_cast<std::uint8_t>(word);
}

/// The TCP segment in an Ethernet frame; empty where there is none.
std::span<std::uint8_t> segment_in(std::span<std::uint8_t> frame) {
  constexpr std::uint32_t kIPv4 = 0x0800;
  constexpr std::uint8_t kTcp = 6;
  if (frame.size() < kEthernetHeader + 40 || word_at(frame, 12) != kIPv4) return {};
  const std::span<std::uint8_t> packet = frame.subspan(kEthernetHeader);
  if (packet[9] != kTcp) return {};
  return packet.subspan(std::size_t{4} * (packet[0] & 15U));
}

}  // namespace

Wire::Wire(const NetworkHosts& hosts, std::size_t host, std::uint16_t control_port)
    : cable_(hosts.splice(host)), control_port_(control_port), thread_([this] { carry(); }) {}

Wire::~Wire() {
  end_.set();
  thread_.join();
}

void Wire::carry() {
  std::array<pollfd, 3> ready{pollfd{end_.fd(), POLLIN, 0},
                              pollfd{cable_.host_end.get(), POLLIN, 0},
                              pollfd{cable_.bridge_end.get(), POLLIN, 0}};
  while (::poll(ready.data(), ready.size(), -1) > 0 && ready[0].revents == 0) {
    if (ready[1].revents != 0) pass_on(cable_.host_end, cable_.bridge_end);
    if (ready[2].revents != 0) pass_on(cable_.bridge_end, cable_.host_end);
  }
}

void Wire::pass_on(const UniqueFd& from, const UniqueFd& to) {
  std::array<std::uint8_t, kLongestFrame> buffer;
  const ssize_t length = ::read(from.get(), buffer.data(), buffer.size());
  if (length <= 0) return;
  const std::span<std::uint8_t> frame(buffer.data(), static_cast<std::size_t>(length));
  if (!flipped()) flip(frame);
  // A frame that is lost is TCP's to send again.
  [[maybe_unused]] const auto written = ::write(to.get(), frame.data(), frame.size());
}

void Wire::flip(std::span<std::uint8_t> frame) {
  constexpr std::size_t kChecksumAt = 16;
  const std::span<std::uint8_t> segment = segment_in(frame);
  if (segment.size() < kLarge) return;
  if (word_at(segment, 2) == control_port_) return;
  const bool control = word_at(segment, 0) == control_port_;
  const std::size_t at = segment.size() / 4 * 2;  // the middle; the checksum is over words
  const std::uint32_t before = word_at(segment, at);
  if (!control && before == 0) return;  // zeros of a joiner's probe, which are discarded
  if (!(control ? flip_in_control_ : flip_in_data_).exchange(false)) return;
  const std::uint32_t after = before ^ 0x10U;
  set_word(segment, at, after);
  // RFC 1624: what was added up has one word less and another more.
  std::uint32_t sum = (~word_at(segment, kChecksumAt) & 0xffffU) + (~before & 0xffffU) + after;
  sum = (sum & 0xffffU) + (sum >> 16U);
  sum = (sum & 0xffffU) + (sum >> 16U);
  set_word(segment, kChecksumAt, ~sum & 0xffffU);
}

}  // namespace elastic::testing
