#include "rendezvous/server/launchers.hpp"

#include <map>
#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::rendezvous {
namespace {

using ::testing::HasSubstr;

/// Launchers with numbers for connections.
class LaunchersTest : public ::testing::Test {
 protected:
  using Connection = std::shared_ptr<int>;

  Connection connect() {
    auto made = std::make_shared<int>(++connections_);
    launchers_.connected(made);
    return made;
  }
  int enlist(const Connection& by, const std::string& id, int slots, int running,
             std::int64_t spawned = 0, std::optional<int> number = {}) {
    return launchers_.enlist(by, {id, "host-" + id, slots, running, spawned, number});
  }
  /// The connections that are told to start workers, and how many in all.
  std::map<int, std::int64_t> place(int count) {
    const auto placed = launchers_.place(count);
    if (!placed.ok()) return {{-1, 0}};
    std::map<int, std::int64_t> told;
    for (const auto& [peer, total] : placed.value()) told[*peer] = total;
    return told;
  }

  Launchers<Connection> launchers_;
  int connections_ = 0;
};
using Told = std::map<int, std::int64_t>;

TEST_F(LaunchersTest, FindsAnotherLauncherWithTheSameName) {
  const auto first = connect();
  launchers_.enlist(first, {"a", "host", 1, 0, 0, {}});
  EXPECT_EQ(launchers_.namesake({"b", "host", 1, 0, 0, {}}), first);
  EXPECT_EQ(launchers_.namesake({"a", "host", 1, 0, 0, {}}), nullptr) << "it is itself";
  EXPECT_EQ(launchers_.namesake({"b", "other", 1, 0, 0, {}}), nullptr);
  launchers_.disconnected(first);
  EXPECT_EQ(launchers_.namesake({"b", "host", 1, 0, 0, {}}), nullptr) << "it has ended";
}

/// Tasks of srun on one node.
TEST_F(LaunchersTest, LaunchersWithPlacesOfTheirOwnMayShareAName) {
  launchers_.enlist(connect(), {"a", "node", 1, 0, 0, 0});
  EXPECT_EQ(launchers_.namesake({"b", "node", 1, 0, 0, 1}), nullptr);
  EXPECT_NE(launchers_.namesake({"b", "node", 1, 0, 0, {}}), nullptr);
}

TEST_F(LaunchersTest, WorkersGoToTheLauncherWithTheFewest) {
  enlist(connect(), "a", 4, 2);
  enlist(connect(), "b", 4, 1);
  EXPECT_EQ(place(1), (Told{{2, 1}}));
  EXPECT_EQ(place(1), (Told{{1, 1}})) << "the one on its way counts";
  EXPECT_EQ(place(2), (Told{{1, 2}, {2, 2}}));
}

TEST_F(LaunchersTest, NoneGoesWhereThereIsNoRoom) {
  enlist(connect(), "a", 1, 1);
  enlist(connect(), "b", 3, 1);
  EXPECT_THAT(launchers_.place(3).status().message(),
              HasSubstr("2 free slots (host-a: 1 of 1, host-b: 1 of 3)"));
  EXPECT_EQ(place(2), (Told{{2, 2}}));
  EXPECT_EQ(place(1), (Told{{-1, 0}}));
}

/// A job of --hosts has a random secret.
TEST_F(LaunchersTest, WithoutRoomItSaysWhereThereMayBeMore) {
  enlist(connect(), "a", 1, 1);
  EXPECT_THAT(launchers_.place(1).status().message(),
              HasSubstr("start another launcher with elasticrun --join and the job's secret file"));
  launchers_.enlist(connect(), {"list", "", 0, 0, 0, {}});
  const std::string listed = launchers_.place(1).status().message();
  EXPECT_THAT(listed, HasSubstr("; add a host or slots to the list of --hostfile or --discover"));
  EXPECT_THAT(listed, ::testing::Not(HasSubstr("--join")));
}

TEST_F(LaunchersTest, ALauncherThatComesBackKeepsItsNumberAndWhatIsWantedOfIt) {
  const Connection first = connect();
  EXPECT_EQ(enlist(first, "a", 4, 0), 0);
  EXPECT_EQ(enlist(connect(), "b", 1, 1), 1);
  EXPECT_EQ(place(2), (Told{{1, 2}}));
  launchers_.disconnected(first);
  EXPECT_EQ(place(1), (Told{{-1, 0}})) << "nobody is there who could start it";
  const Connection again = connect();
  EXPECT_EQ(enlist(again, "a", 4, 1, 1), 0);
  EXPECT_EQ(launchers_.wanted(again), 2) << "the second one has not been started";
}

/// Pods and spot hosts come and go for weeks.
TEST_F(LaunchersTest, ALauncherTakesThePlaceOfTheOneBeforeOnItsHost) {
  const auto enlist_on_pod = [&](const Connection& by, const std::string& id,
                                 std::optional<int> number = {}) {
    return launchers_.enlist(by, {id, "pod-1", 2, 0, 0, number});
  };
  enlist(connect(), "a", 4, 2);
  for (int life = 0; life < 40; ++life) {
    const Connection pod = connect();
    EXPECT_EQ(enlist_on_pod(pod, "life-" + std::to_string(life)), 1);
    launchers_.disconnected(pod);
  }
  EXPECT_EQ(launchers_.status().size(), 2U);
  EXPECT_EQ(enlist_on_pod(connect(), "with-a-number", 7), 7) << "another one, by its number";
  EXPECT_EQ(launchers_.status().size(), 3U);
  EXPECT_EQ(enlist_on_pod(connect(), "beside-it"), 1) << "the one that is there keeps its place";
  EXPECT_EQ(launchers_.status().size(), 3U);
}

TEST_F(LaunchersTest, AnotherServerTakesOverTheNumbers) {
  const Connection one = connect();
  EXPECT_EQ(enlist(one, "b", 4, 2, 7, 1), 1);
  EXPECT_EQ(launchers_.wanted(one), 7) << "those were requested of it by the server before";
  EXPECT_EQ(enlist(connect(), "c", 4, 2), 0);
  EXPECT_EQ(enlist(connect(), "d", 4, 2, 0, 1), 2) << "the number is taken";
}

TEST_F(LaunchersTest, OneThatHasNotEnlistedHasNoLimit) {
  const Connection old = connect();
  EXPECT_EQ(place(9), (Told{{1, 9}}));
  launchers_.disconnected(old);
  EXPECT_TRUE(launchers_.empty());
  EXPECT_EQ(launchers_.wanted(connect()), 9) << "it has come back";
}

TEST_F(LaunchersTest, NoneGoesToAHostInQuarantine) {
  enlist(connect(), "a", 4, 0);
  enlist(connect(), "b", 1, 0);
  EXPECT_EQ(launchers_.set_quarantine("host-a", true).size(), 1U);
  EXPECT_EQ(launchers_.room(), 1);
  EXPECT_THAT(launchers_.place(2).status().message(),
              HasSubstr("1 free slots (host-a: 0 of 4, in quarantine, host-b: 0 of 1)"));
  EXPECT_EQ(place(1), (Told{{2, 1}}));
  launchers_.set_quarantine("host-a", false);
  EXPECT_EQ(place(1), (Told{{1, 1}}));
}

TEST_F(LaunchersTest, WhatALauncherTellsAgainOnItsNextConnectionIsNoNews) {
  const Connection first = connect();
  enlist(first, "a", 4, 1);
  EXPECT_TRUE(launchers_.is_news(first, 1));
  EXPECT_TRUE(launchers_.is_news(first, 2));
  launchers_.disconnected(first);
  const Connection again = connect();
  enlist(again, "a", 4, 1);
  EXPECT_FALSE(launchers_.is_news(again, 2));
  EXPECT_TRUE(launchers_.is_news(again, 3));
}

TEST_F(LaunchersTest, HostsAreKnownByNameAndByNumber) {
  enlist(connect(), "a", 4, 0);
  const Connection second = connect();
  enlist(second, "b", 0, 0);
  EXPECT_EQ(launchers_.host_named("host-b"), "host-b");
  EXPECT_EQ(launchers_.host_named("1"), "host-b");
  EXPECT_EQ(launchers_.host_named("2"), "");
  EXPECT_EQ(launchers_.hosts_with_slots(), std::set<std::string>{"host-a"}) << "b is drained";
  launchers_.disconnected(second);
  EXPECT_EQ(launchers_.host_of(1), "host-b");
}

/// Containers often have the same name.
TEST_F(LaunchersTest, ANumberIsThatOfOneLauncherAmongSeveralOfAName) {
  const auto enlist_as = [&](const std::string& host) {
    const Connection by = connect();
    launchers_.enlist(by, {"id-" + std::to_string(*by), host, 2, 1, 0, {}});
    return by;
  };
  enlist_as("vm");
  const Connection second = enlist_as("vm");
  enlist_as("1");
  EXPECT_EQ(launchers_.numbers_of("vm"), (std::vector<int>{0, 1}));
  EXPECT_EQ(launchers_.numbers_of("1"), std::vector<int>{1}) << "also where a host is called so";
  EXPECT_EQ(launchers_.host_named("1"), "vm");
  EXPECT_EQ(launchers_.host_named("2"), "1");
  const auto limited = launchers_.limit("1", 0);
  ASSERT_EQ(limited.size(), 1U);
  EXPECT_EQ(limited[0].first, second);
  EXPECT_EQ(launchers_.limit("vm", 1).size(), 2U);
  launchers_.disconnected(second);
  EXPECT_EQ(launchers_.connected_of("vm"), std::vector<int>{0});
  EXPECT_EQ(launchers_.numbers_of("vm"), (std::vector<int>{0, 1}));
}

TEST_F(LaunchersTest, AreListedByNumber) {
  enlist(connect(), "z", 4, 2);
  const Connection second = connect();
  enlist(second, "a", 2, 1);
  launchers_.disconnected(second);
  const auto all = launchers_.status();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].host, "host-z");
  EXPECT_TRUE(all[0].connected);
  EXPECT_EQ(all[1].number, 1);
  EXPECT_FALSE(all[1].connected);
}

}  // namespace
}  // namespace elastic::rendezvous
