// Measuring the line from another worker.
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "linking_worker.hpp"

namespace elastic::transport {
namespace {

constexpr double kSlowest = 1e5;  // bytes per second that loopback carries on any machine

TEST_F(LinkerTest, AProbeMeasuresTheLineAndMakesNoLink) {
  LinkingWorker joiner(options("a"));
  LinkingWorker donor(options("b"));
  const Result<double> rate = joiner.probe(peer("b", donor)).get();
  ASSERT_TRUE(rate.ok()) << rate.status().message();
  EXPECT_GT(rate.value(), kSlowest);
  // Links are made as if nothing had been.
  auto at_joiner = joiner.connect({peer("b", donor)});
  auto at_donor = donor.connect({peer("a", joiner)});
  expect_pair(std::move(at_joiner), std::move(at_donor));
}

TEST_F(LinkerTest, ManyProbesOfOneDonorAllGetTheirTurn) {
  LinkingWorker donor(options("donor"));
  std::vector<std::unique_ptr<LinkingWorker>> joiners;
  std::vector<std::future<Result<double>>> rates;
  for (int i = 0; i < 8; ++i) {
    joiners.push_back(std::make_unique<LinkingWorker>(options("joiner" + std::to_string(i))));
    rates.push_back(joiners.back()->probe(peer("donor", donor), 3 * kLinkDeadline));
  }
  for (auto& rate : rates) EXPECT_TRUE(rate.get().ok());
}

TEST_F(LinkerTest, AProbeOfAnAbsentPeerFailsInTime) {
  LinkingWorker joiner(options("a"));
  Peer absent;
  absent.incarnation = "b";
  absent.endpoints.tcp = {"127.0.0.1:1"};
  const Result<double> rate = joiner.probe(absent, Milliseconds(200)).get();
  EXPECT_EQ(rate.status().code(), Code::kTimeout);
}

TEST_F(LinkerTest, AProbeWithAnotherSecretGetsNothing) {
  LinkingWorker donor(options("b"));
  LinkerOptions stranger = options("a");
  stranger.secret = random_secret();
  LinkingWorker joiner(stranger);
  EXPECT_FALSE(joiner.probe(peer("b", donor), Milliseconds(500)).get().ok());
}

TEST_F(LinkerTest, ADonorMayGoInTheMiddleOfAProbe) {
  LinkingWorker joiner(options("a"));
  auto donor = std::make_unique<LinkingWorker>(options("b"));
  auto rate = joiner.probe(peer("b", *donor), Milliseconds(500));
  donor.reset();
  const Result<double> outcome = rate.get();
  EXPECT_TRUE(outcome.ok() || outcome.status().code() == Code::kTimeout);
}

}  // namespace
}  // namespace elastic::transport
