// Strangers send to a running job's ports: nonsense, too much, too slowly, too often.
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/unauthenticated_fixture.hpp"

namespace elastic::testing {
namespace {

/// Memory that may come and go for other reasons, in KiB.
constexpr std::size_t kSomeKib = 8U * 1024U * kSlowness;

class Strangers : public UnauthenticatedFixture {};

TEST_F(Strangers, AreDroppedWhateverTheySay) {
  const std::uint64_t seed = first_seed();
  std::mt19937_64 random(seed);
  std::vector<std::string> openings{
      "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: nobody in particular\r\n\r\n",
      std::string(8, '\xff') + std::string(100, 'x'), std::string(100000, '['),
      std::string(1000000, '\0')};
  for (int i = 0; i < runs(40); ++i) {
    std::string& text = openings.emplace_back(64 + random() % 3000, ' ');
    for (char& character : text) character = static_cast<char>(random() & 0xffU);
  }
  for (const Door& door : doors()) {
    for (const std::string& opening : openings) {
      Stranger stranger(door.port);
      stranger.send(opening);
      ASSERT_TRUE(stranger.is_dropped()) << door.name << ", seed " << seed;
    }
  }
  expect_unaffected();
}

/// A hello that is right but for the length that it announces for what follows.
TEST_F(Strangers, CannotMakeAWorkerAllocateWhatTheyAnnounce) {
  for (const Door& door : doors()) {
    const std::size_t before = resident_kib(door.owner);
    for (int i = 0; i < 100; ++i) {
      Stranger stranger(door.port);
      std::vector<std::byte> hello = handshake::Dialer({}, door.purpose, "", encrypted()).hello();
      std::fill(hello.end() - 4, hello.end(), std::byte{0xff});
      stranger.send(hello);
      // The server tells its version first, with a challenge.
      stranger.receive<handshake::kChallengeBytes>();
      ASSERT_TRUE(stranger.is_dropped()) << door.name;
    }
    EXPECT_LT(resident_kib(door.owner), before + kSomeKib) << door.name;
  }
  expect_unaffected();
}

TEST_F(Strangers, OnTwoHundredSlowConnectionsKeepNoWorkerOut) {
  std::vector<std::unique_ptr<Stranger>> slow;
  for (const Door& door : doors()) {
    for (int i = 0; i < 200; ++i) slow.push_back(std::make_unique<Stranger>(door.port));
  }
  const auto members = job_.others({});
  const std::string hello = "ELH1";
  for (const char character : hello) {
    for (const auto& stranger : slow) stranger->send(std::string(1, character));
    ASSERT_TRUE(FaultJob::await_steps(members, 20)) << job_.text();
    // One byte per second is what is tested.
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  expect_unaffected();
  for (const auto& stranger : slow) ASSERT_TRUE(stranger->is_dropped());
}

TEST_F(Strangers, WhoConnectTenThousandTimesLeaveNothingBehind) {
  constexpr int kConnects = 10000;
  constexpr int kAtATime = 250;
  for (const Door& door : doors()) {
    const std::size_t memory = resident_kib(door.owner);
    const Footprint before = footprint(door.owner);
    for (int i = 0; i < kConnects / kSlowness; i += kAtATime) {
      std::vector<std::unique_ptr<Stranger>> many;
      for (int k = 0; k < kAtATime; ++k) many.push_back(std::make_unique<Stranger>(door.port));
      for (const auto& stranger : many) stranger->reset();
    }
    Footprint now;
    EXPECT_TRUE(eventually(kLong, [&] { return (now = footprint(door.owner)).is_within(before); }))
        << door.name << ": " << before.descriptors << " descriptors before, " << now.descriptors
        << " after";
    EXPECT_LT(resident_kib(door.owner), memory + kSomeKib) << door.name;
  }
  expect_unaffected();
}

}  // namespace
}  // namespace elastic::testing
