// The launcher's connection with the server brings something damaged, or is gone for a while. The
// launcher comes back, and neither misses nor repeats anything.
#include "rendezvous/launcher/job_connection.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flipping_proxy.hpp"
#include "rendezvous_fixture.hpp"
#include "tests/reserved_port.hpp"

namespace elastic::rendezvous {
namespace {

using launcher::JobConnection;
using launcher::JobPhase;
using testing::FlippingProxy;
using Towards = FlippingProxy::Towards;

constexpr Milliseconds kForEver{1000000};

class JobConnectionTest : public RendezvousTest {
 protected:
  /// Dials the server by way of the proxy.
  void launch(Milliseconds timeout = kForEver) {
    proxy_.emplace(io_, server_->address());
    launcher_.emplace(
        io_, Destination{proxy_->address(), secret_, {kProtocolVersion, kJob, "launcher"}},
        Enlist{"id", "host", 8, 0, 0, std::nullopt},
        JobConnection::Handlers{
            [this](const launcher::JobStateChanged& state) { states_.push_back(state.phase); },
            [this](const launcher::SpawnWanted& wanted) { spawned_ += wanted.count; },
            {},
            {},
            {},
            {}},
        timeout);
    ASSERT_TRUE(eventually([&] { return !states_.empty(); }));
    EXPECT_EQ(phase(), states_.back());  // the server's first messages are all here
  }
  std::optional<JobPhase> phase() {
    std::optional<JobPhase> told;
    launcher_->ask_about("", [&](const launcher::WorkerReport& report) { told = report.phase; });
    EXPECT_TRUE(eventually([&] { return told.has_value(); }));
    return told;
  }
  /// Brings something damaged to the server, and waits until the launcher is back.
  void damage(std::size_t bit) {
    proxy_->flip(Towards::kServer, bit);
    const std::vector<JobPhase> before = states_;
    EXPECT_EQ(phase(), before.back());
    EXPECT_EQ(states_.size(), before.size() + 1) << "it did not come back";
  }

  std::optional<FlippingProxy> proxy_;
  std::optional<JobConnection> launcher_;
  std::vector<JobPhase> states_;
  int spawned_ = 0;
};

TEST_F(JobConnectionTest, AsksAgainWhereTheServerMisheard) {
  serve(options(1));
  launch();
  form(1);
  ASSERT_TRUE(eventually([&] { return states_.back() == JobPhase::kRunning; }));
  for (const std::size_t bit : {7U, 40U, 8 * 14U}) damage(bit);
  EXPECT_EQ(phase(), JobPhase::kRunning);
  EXPECT_FALSE(std::get<Done>(ask(AddRequest{2}).value()).ok) << "no worker can join yet";
  workers_[0]->client->send(Ready{});
  ASSERT_TRUE(eventually([&] { return std::get<Done>(ask(AddRequest{2}).value()).ok; }));
  EXPECT_TRUE(eventually([&] { return spawned_ == 2; }));
}

TEST_F(JobConnectionTest, StartsWhatItMisheardOnce) {
  serve(options(1));
  launch();
  for (const std::size_t bit : {7U, 40U, 8 * 14U}) {
    const int before = spawned_;
    proxy_->flip(Towards::kClient, bit);
    ASSERT_TRUE(std::get<Done>(ask(AddRequest{2}).value()).ok);
    ASSERT_TRUE(eventually([&] { return spawned_ > before; })) << "bit " << bit;
    EXPECT_TRUE(proxy_->flipped());
    EXPECT_EQ(spawned_, before + 2);
  }
  damage(40);
  EXPECT_EQ(phase(), JobPhase::kForming);
  EXPECT_EQ(spawned_, 6);
}

TEST_F(JobConnectionTest, HearsOfTheEndThatItMisheard) {
  serve(options(1));
  launch();
  form(1);
  ASSERT_TRUE(eventually([&] { return states_.back() == JobPhase::kRunning; }));
  proxy_->flip(Towards::kClient, 40);
  workers_[0]->client->send(Bye{true});
  EXPECT_TRUE(eventually([&] { return states_.back() == JobPhase::kDone; }));
  EXPECT_TRUE(proxy_->flipped());
}

TEST_F(JobConnectionTest, AsksForTheStopAgain) {
  serve(options(1));
  launch();
  form(1);
  ASSERT_TRUE(eventually([&] { return states_.back() == JobPhase::kRunning; }));
  proxy_->flip(Towards::kServer, 40);
  launcher_->request_stop();
  EXPECT_TRUE(eventually([&] { return states_.back() == JobPhase::kDone; }));
  EXPECT_TRUE(workers_[0]->all<Farewell>().empty()) << "the launcher ends them";
  EXPECT_TRUE(proxy_->flipped());
}

TEST_F(JobConnectionTest, AFailureThatIsToldTwiceCountsOnce) {
  serve(options(1));
  launch();
  const JobConnection other(
      io_, Destination{server_->address(), secret_, {kProtocolVersion, kJob, "launcher"}},
      Enlist{"other", "another host", 1, 0, 0, std::nullopt}, {});
  const auto launchers = [&] {
    return std::get<StatusReply>(ask(StatusRequest{}).value()).launchers.value();
  };
  ASSERT_TRUE(eventually([&] { return launchers().size() == 2; }));
  for (int failed = 0; failed < 2; ++failed) {
    proxy_->flip(Towards::kClient, 40);  // in the answer
    launcher_->tell_end("slot-0", "exited with code 7", 0);
    EXPECT_EQ(phase(), JobPhase::kForming);
    EXPECT_TRUE(proxy_->flipped());
  }
  EXPECT_FALSE(launchers()[0].quarantine);
  launcher_->tell_end("slot-0", "exited with code 7", 0);
  EXPECT_EQ(phase(), JobPhase::kForming);
  EXPECT_TRUE(launchers()[0].quarantine);
}

TEST_F(JobConnectionTest, DoesWithoutAServerThatIsGoneUntilItIsBack) {
  const testing::ReservedPort port;
  ServerOptions with = options(1);
  with.port = port.number();
  serve(with);
  launch(Milliseconds(1));
  server_.reset();
  launcher_->request_stop();
  EXPECT_EQ(phase(), JobPhase::kForming);  // what was last known
  EXPECT_EQ(states_, std::vector{JobPhase::kForming});
  serve(with);
  EXPECT_TRUE(eventually([&] { return states_.back() == JobPhase::kDone; }));
}

}  // namespace
}  // namespace elastic::rendezvous
