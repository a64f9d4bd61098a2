// A bit is flipped in what a worker and the rendezvous server say to each other, where TCP does not
// notice. Nobody may be given up for that, whichever side sees it and whatever it was in.
#include <array>
#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flipping_proxy.hpp"
#include "rendezvous_fixture.hpp"

namespace elastic::rendezvous {
namespace {

using testing::FlippingProxy;
using ::testing::HasSubstr;
using Towards = FlippingProxy::Towards;

/// In a frame's length, in the rest of its header, and in the message.
constexpr std::array<std::size_t, 3> kBits{7, 40, 8 * 14};

class DamagedControl : public RendezvousTest {
 protected:
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

TEST_F(DamagedControl, TheServerLetsAWorkerComeBackThatItMisheard) {
  serve(options(2));
  workers_.push_back(worker("near"));
  Worker& far = start_far();
  ASSERT_TRUE(eventually([&] { return all_see(1, 2); }));
  for (const std::size_t bit : kBits) {  // of a heartbeat
    const std::size_t welcomed = far.all<Welcome>().size();
    proxy_->flip(Towards::kServer, bit);
    ASSERT_TRUE(eventually([&] { return far.all<Welcome>().size() > welcomed; })) << "bit " << bit;
  }
  EXPECT_EQ(far.failures.size(), kBits.size());
  const StatusReply now = status();
  EXPECT_EQ(now.view.generation, 1U);
  EXPECT_EQ(now.view.members.size(), 2U);
  EXPECT_TRUE(workers_[0]->failures.empty());
}

TEST_F(DamagedControl, AMemberThatMisheardAFreezeIsFrozenAgain) {
  serve(options(3));
  workers_.push_back(worker("near"));
  workers_.push_back(worker("third"));
  Worker& far = start_far();
  ASSERT_TRUE(eventually([&] { return all_see(1, 3); }));
  for (const std::size_t bit : kBits) {
    const std::uint64_t generation = workers_[0]->view().generation;
    proxy_->flip(Towards::kClient, bit);
    workers_[0]->client->send(Suspect{generation, "third", "for the test"});
    ASSERT_TRUE(eventually([&] { return all_see(generation + 1, 3); })) << "bit " << bit;
    ASSERT_TRUE(eventually([&] { return workers_[0]->view() == far.view(); }));
    EXPECT_TRUE(far.view().lost.empty());
    EXPECT_THAT(last_failure(far), HasSubstr("damaged on the way (checksum"));
  }
  EXPECT_EQ(far.failures.size(), kBits.size());
  EXPECT_TRUE(workers_[0]->failures.empty());
}

TEST_F(DamagedControl, AJoinerThatMisheardItsFirstViewIsToldAgain) {
  serve(options(2));
  form(2);
  for (const auto& member : workers_) member->client->send(Ready{});
  Worker& far = start_far();
  ASSERT_TRUE(eventually([&] { return !far.messages.empty(); }));
  proxy_->flip(Towards::kClient, kBits.back());
  far.client->send(Ready{});
  ASSERT_TRUE(eventually([&] { return all_see(2, 3); }));
  EXPECT_EQ(far.view().generation, 2U);
  EXPECT_THAT(last_failure(far), HasSubstr("a control frame of "));
}

}  // namespace
}  // namespace elastic::rendezvous
