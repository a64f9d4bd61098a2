// A bit is flipped between a worker and the rendezvous server, where TCP does not notice it. No
// worker may be given up for that, whichever side sees it, and whichever message it is in.
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ringbuffer_sink.h>

#include "base/log.hpp"
#include "flipping_proxy.hpp"
#include "rendezvous_fixture.hpp"

namespace elastic::rendezvous {
namespace {

using testing::FlippingProxy;
using ::testing::HasSubstr;
using Towards = FlippingProxy::Towards;

struct Plane {
  bool encrypt;
  std::array<std::size_t, 3> bits;
  const char* damage;  ///< how it is named
};
/// Bits in a frame's length, in the rest of its header, and in the message.
constexpr Plane kInTheClear{false, {7, 40, 8 * 14}, "damaged on the way (checksum"};
/// Bits in a record's length, which then says 2048 bytes more, in that length's checksum, and in
/// the encrypted data.
constexpr Plane kUnderTls{true, {8 * 3 + 3, 12, 8 * 14}, "damaged or forged on the way"};

class DamagedControl : public RendezvousTest, public ::testing::WithParamInterface<Plane> {
 protected:
  DamagedControl() { encrypt_ = GetParam().encrypt; }

  /// A worker with the proxy in its way.
  Worker& start_far() {
    proxy_.emplace(io_, server_->address());
    ClientOptions options = client_options("far");
    options.address = proxy_->address();
    return *workers_.emplace_back(std::make_unique<Worker>(io_, options));
  }
  static std::string last_failure(const Worker& worker) {
    EXPECT_EQ(worker.failures.back().code(), Code::kPeerLost);
    return worker.failures.back().message();
  }

  std::optional<FlippingProxy> proxy_;
};

TEST_P(DamagedControl, TheServerLetsAWorkerComeBackThatItMisheard) {
  serve(options(2));
  workers_.push_back(worker("near"));
  Worker& far = start_far();
  ASSERT_TRUE(eventually([&] { return all_see(1, 2); }));
  for (const std::size_t bit : GetParam().bits) {  // of a heartbeat
    const std::size_t welcomed = far.all<Welcome>().size();
    proxy_->flip(Towards::kServer, bit);
    ASSERT_TRUE(eventually([&] { return far.all<Welcome>().size() > welcomed; })) << "bit " << bit;
  }
  EXPECT_EQ(far.failures.size(), GetParam().bits.size());
  const StatusReply now = status();
  EXPECT_EQ(now.view.generation, 1U);
  EXPECT_EQ(now.view.members.size(), 2U);
  EXPECT_TRUE(workers_[0]->failures.empty());
}

TEST_P(DamagedControl, AMemberThatMisheardAFreezeIsFrozenAgain) {
  serve(options(3));
  workers_.push_back(worker("near"));
  workers_.push_back(worker("third"));
  Worker& far = start_far();
  ASSERT_TRUE(eventually([&] { return all_see(1, 3); }));
  for (const std::size_t bit : GetParam().bits) {
    const std::uint64_t generation = workers_[0]->view().generation;
    proxy_->flip(Towards::kClient, bit);
    workers_[0]->client->send(Suspect{generation, "third", "for the test"});
    ASSERT_TRUE(eventually([&] { return all_see(generation + 1, 3); })) << "bit " << bit;
    ASSERT_TRUE(eventually([&] { return workers_[0]->view() == far.view(); }));
    EXPECT_TRUE(far.view().lost.empty());
    EXPECT_THAT(last_failure(far), HasSubstr(GetParam().damage));
  }
  EXPECT_EQ(far.failures.size(), GetParam().bits.size());
  EXPECT_TRUE(workers_[0]->failures.empty());
}

TEST_P(DamagedControl, AJoinerThatMisheardItsFirstViewIsToldAgain) {
  serve(options(2));
  form(2);
  for (const auto& member : workers_) member->client->send(Ready{});
  Worker& far = start_far();
  ASSERT_TRUE(eventually([&] { return !far.messages.empty(); }));
  proxy_->flip(Towards::kClient, GetParam().bits.back());
  far.client->send(Ready{});
  ASSERT_TRUE(eventually([&] { return all_see(2, 3); }));
  EXPECT_EQ(far.view().generation, 2U);
  EXPECT_THAT(last_failure(far), HasSubstr(GetParam().damage));
}

INSTANTIATE_TEST_SUITE_P(Planes, DamagedControl, ::testing::Values(kInTheClear, kUnderTls),
                         [](const auto& param) { return param.param.encrypt ? "tls" : "clear"; });

constexpr std::size_t kLastBit = std::numeric_limits<std::size_t>::max();

/// Damage before the worker is registered.
class DamagedStart : public RendezvousTest {
 protected:
  void SetUp() override { log::get().sinks().push_back(logged_); }
  void TearDown() override {
    server_.reset();
    log::get().sinks().pop_back();
  }
  std::string logged() const {
    std::string all;
    for (const std::string& line : logged_->last_formatted()) all += line;
    return all;
  }

  std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> logged_ =
      std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(100);
};

TEST_F(DamagedStart, OfARegistrationIsNamedAndItIsSaidAgain) {
  serve(options(1));
  FlippingProxy proxy(io_, server_->address());
  ClientOptions options = client_options("far");
  options.address = proxy.address();
  proxy.flip(Towards::kServer, 8 * 14, 2);  // behind hello and proof
  workers_.push_back(std::make_unique<Worker>(io_, options));
  ASSERT_TRUE(eventually([&] { return all_see(1, 1); }));
  EXPECT_TRUE(proxy.flipped());
  EXPECT_THAT(logged(), HasSubstr("the connection of 127.0.0.1:"));
  EXPECT_THAT(logged(), HasSubstr("damaged on the way (checksum"));
}

TEST_F(DamagedStart, OfTheHandshakeOfTlsCostsAnotherAttempt) {
  encrypt_ = true;
  serve(options(1));
  FlippingProxy proxy(io_, server_->address());
  for (const Towards side : {Towards::kServer, Towards::kClient}) {
    proxy.flip(side, kLastBit, 2);  // behind hello and proof, or challenge and verdict
    const Status status =
        await(dial({proxy.address(), secret_, {kProtocolVersion, kJob, "control"}, true},
                   Milliseconds(10000)))
            .status();
    EXPECT_TRUE(proxy.flipped());
    EXPECT_EQ(status.code(), Code::kUnavailable) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(proxy.address()));
  }
  proxy.flip(Towards::kServer, kLastBit, 2);
  ClientOptions options = client_options("far");
  options.address = proxy.address();
  workers_.push_back(std::make_unique<Worker>(io_, options));
  ASSERT_TRUE(eventually([&] { return all_see(1, 1); }));
  EXPECT_TRUE(proxy.flipped());
  EXPECT_TRUE(workers_.front()->failures.empty());
}

}  // namespace
}  // namespace elastic::rendezvous
