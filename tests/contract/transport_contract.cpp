#include "transport_contract.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "base/clock.hpp"

namespace elastic::transport {
namespace {

constexpr auto kTimeLimit = std::chrono::seconds(20);
/// Rounds in which nothing moved: loopback TCP delivers within few, as a rule. Nothing may be
/// expected to have come by then.
constexpr int kIdleRounds = 2000;

}  // namespace

ByteVector pattern(std::size_t bytes, std::uint64_t seed) {
  constexpr std::size_t kPeriod = 65'521;  // a prime: no piece of a message is as long
  std::mt19937_64 random(seed);
  ByteVector made(bytes);
  const std::size_t drawn = std::min(bytes, kPeriod);
  for (std::size_t i = 0; i < drawn; ++i) made[i] = static_cast<std::byte>(random() & 0xffU);
  for (std::size_t i = drawn; i < bytes; i += kPeriod) {
    std::memcpy(&made[i], made.data(), std::min(kPeriod, bytes - i));
  }
  return made;
}

std::span<const std::byte> as_payload(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void add_i32(std::byte* into, const std::byte* left, const std::byte* right, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    std::int32_t a = 0;
    std::int32_t b = 0;
    std::memcpy(&a, left + 4 * i, 4);
    std::memcpy(&b, right + 4 * i, 4);
    a += b;
    std::memcpy(into + 4 * i, &a, 4);
  }
}

void write_frame(Stream& stream, std::uint32_t message, std::uint64_t offset,
                 const ByteVector& payload) {
  FrameHeader header;
  header.kind = FrameKind::kData;
  header.tag = tag_at(0);
  header.message = message;
  header.offset = offset;
  header.length = static_cast<std::uint32_t>(payload.size());
  header.fingerprint = kCall;
  std::array<std::byte, FrameHeader::kBytes> encoded;
  encode(header, encoded);
  const std::array<std::span<const std::byte>, 2> parts = {encoded, payload};
  ASSERT_EQ(stream.write(parts).value(), encoded.size() + payload.size());
}

std::string wiring_name(const testing::TestParamInfo<StreamWiring>& info) {
  return info.param.name;
}

void TransportContract::SetUp() {
  connect();
}

void TransportContract::connect() {
  connect_bare();
  far_ = std::make_unique<Link>(std::move(bare_), "near end");
  far_->set_peer(0);
  bare_.clear();
}

void TransportContract::connect_bare() {
  std::vector<StreamPtr> near;
  bare_.clear();
  far_.reset();
  for (std::size_t i = 0; i < GetParam().streams; ++i) {
    StreamPair pair = GetParam().pair();
    near.push_back(std::move(pair.first));
    bare_.push_back(std::move(pair.second));
  }
  near_ = std::make_unique<Link>(std::move(near), "far end");
  near_->set_peer(1);
}

void TransportContract::begin_both(const OpTag& tag) {
  near_->begin(tag, kCall);
  far_->begin(tag, kCall);
}

void TransportContract::pass_each_other(const OpTag& tag, std::size_t bytes) {
  begin_both(tag);
  const ByteVector to_far = pattern(bytes, 1);
  const ByteVector to_near = pattern(bytes, 2);
  ByteVector at_far(bytes);
  ByteVector at_near(bytes);
  near_->receive({at_near});
  far_->receive({at_far});
  near_->send(to_far);
  far_->send(to_near);
  const Status status = pump([&] { return near_->complete() && far_->complete(); });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(at_far == to_far);
  EXPECT_TRUE(at_near == to_near);
}

Status TransportContract::pump(const std::function<bool()>& done) {
  TimePoint last_moved = Clock::now();
  while (!done()) {
    bool moved = false;
    if (Status status = near_->progress(moved); !status.ok()) return status;
    if (far_) {
      if (Status status = far_->progress(moved); !status.ok()) return status;
    }
    const TimePoint now = Clock::now();
    if (moved) last_moved = now;
    if (now - last_moved > kTimeLimit) return Status(Code::kTimeout, "nothing came of it");
  }
  return {};
}

std::optional<ByteVector> TransportContract::note_at_far(std::uint64_t generation) {
  std::optional<ByteVector> note;
  const Status status = pump([&] { return (note = far_->take_note(generation)).has_value(); });
  EXPECT_TRUE(status.ok()) << status.message();
  return note;
}

bool TransportContract::sees_the_end(const Link& link) {
  const TimePoint deadline = Clock::now() + kTimeLimit;
  while (!link.hung_up() && Clock::now() < deadline) std::this_thread::yield();
  return link.hung_up();
}

Status TransportContract::failure_of_near() {
  const TimePoint deadline = Clock::now() + kTimeLimit;
  while (Clock::now() < deadline) {
    bool moved = false;
    if (Status status = near_->progress(moved); !status.ok()) return status;
    if (moved) continue;
    std::vector<pollfd> watched;
    if (near_->prepare_wait(watched)) ::poll(watched.data(), watched.size(), 100);
    near_->finish_wait();
  }
  return Status(Code::kTimeout, "no failure");
}

void TransportContract::pump_until_idle() {
  for (int idle = 0; idle < kIdleRounds; ++idle) {
    bool moved = false;
    ASSERT_TRUE(near_->progress(moved).ok());
    if (far_) {
      ASSERT_TRUE(far_->progress(moved).ok());
    }
    if (moved) idle = 0;
  }
}

}  // namespace elastic::transport
