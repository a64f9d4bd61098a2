// Linkers of several workers, each with its own control thread, over real sockets.
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/transport/shm/arena.hpp"
#include "linking_worker.hpp"

namespace elastic::transport {
namespace {

struct Case {
  std::string name;
  Transport allowed;
  std::string bind;
  int streams;
  std::string transport;
};

class LinkerTransports : public LinkerTest, public testing::WithParamInterface<Case> {};

TEST_P(LinkerTransports, TwoWorkersAreLinkedInEveryLane) {
  const auto worker = [&](const std::string& name) {
    LinkerOptions made = options(name);
    made.transport = GetParam().allowed;
    made.bind_address = GetParam().bind;
    made.streams = GetParam().streams;
    made.arena = Arena::create().value();
    return std::make_unique<LinkingWorker>(std::move(made));
  };
  const auto a = worker("a");
  const auto b = worker("b");
  ASSERT_TRUE(a->listening().ok()) << a->listening().message();
  ASSERT_FALSE(a->endpoints().tcp.empty());
  auto at_a = a->connect({peer("b", *b)});
  auto at_b = b->connect({peer("a", *a)});
  const auto links = expect_pair(std::move(at_a), std::move(at_b));
  ASSERT_EQ(links.first.size(), 2U);
  for (const auto& link : {links.first[0], links.first[1], links.second[0], links.second[1]}) {
    EXPECT_EQ(link->transport(), GetParam().transport);
    EXPECT_EQ(link->arena() != nullptr, GetParam().transport == "shm");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Every, LinkerTransports,
    testing::Values(Case{"automatic", Transport::kAuto, "127.0.0.1", 1, "shm"},
                    Case{"shm", Transport::kShm, "127.0.0.1", 1, "shm"},
                    Case{"tcp4", Transport::kTcp, "127.0.0.1", 1, "tcp"},
                    Case{"tcp6", Transport::kTcp, "::1", 1, "tcp"},
                    Case{"tcp_streams", Transport::kTcp, "127.0.0.1", 4, "tcp"},
                    Case{"any_v4", Transport::kTcp, "0.0.0.0", 1, "tcp"},
                    Case{"any_v6", Transport::kTcp, "::", 2, "tcp"}),
    [](const testing::TestParamInfo<Case>& tested) { return tested.param.name; });

TEST_F(LinkerTest, ThreeWorkersAreAllLinked) {
  LinkingWorker a(options("a"));
  LinkingWorker b(options("b"));
  LinkingWorker c(options("c"));
  auto at_a = a.connect({peer("b", b), peer("c", c)});
  auto at_b = b.connect({peer("a", a), peer("c", c)});
  auto at_c = c.connect({peer("a", a), peer("b", b)});
  Links of_a = at_a.get();
  Links of_b = at_b.get();
  Links of_c = at_c.get();
  ASSERT_TRUE(of_a.ok() && of_b.ok() && of_c.ok());
  for (std::size_t lane = 0; lane < 2; ++lane) {
    expect_linked(of_a.value()[0][lane], of_b.value()[0][lane]);
    expect_linked(of_a.value()[1][lane], of_c.value()[0][lane]);
    expect_linked(of_c.value()[1][lane], of_b.value()[1][lane]);
  }
}

/// Two workers on each of two hosts, as far as they know.
TEST_F(LinkerTest, FlowsAreOpenedByTheNumberOfRanksOnAHost) {
  LinkerOptions made = options("a");
  made.streams = 0;
  LinkingWorker a(made);
  made.incarnation = options("b").incarnation;
  LinkingWorker b(made);
  const auto elsewhere = [&](const char* name, const LinkingWorker& worker) {
    Peer away = peer(name, worker);
    away.endpoints.host = "elsewhere";
    return away;
  };
  const auto link = [&](bool alone) {
    Peer absent;
    absent.incarnation = "zz-absent" + suffix_;
    absent.endpoints = elsewhere("a", a).endpoints;
    std::vector<Peer> peers{elsewhere("a", a)};
    if (!alone) peers.push_back(absent);
    auto at_b = b.connect(peers);
    auto at_a = a.connect({elsewhere("b", b)});
    const Links links = at_a.get();
    if (!alone) b.cancel();  // no peer comes any more
    at_b.wait();
    return links.ok() ? links.value()[0][1]->flows() : 0;
  };
  EXPECT_EQ(link(false), 8U);
  EXPECT_TRUE(a.connect({}).get().ok());
  EXPECT_TRUE(b.connect({}).get().ok());
  EXPECT_EQ(link(true), 16U);
}

/// A worker that was not told where to listen does so on loopback.
TEST_F(LinkerTest, AMissingBindAddressIsNamedBetweenHosts) {
  LinkingWorker a(options("a"));
  const auto failure = [&](const std::string& host, const std::string& address) {
    Peer other;
    other.incarnation = "0-other" + suffix_;  // so that `a` dials
    other.endpoints.host = host;
    other.endpoints.tcp = {address};
    const Links links = a.connect({other}, Milliseconds(100)).get();
    return links.ok() ? std::string("linked") : links.status().message();
  };
  const std::string hidden = failure("elsewhere", "127.0.0.1:1");
  EXPECT_NE(hidden.find("it listens on 127.0.0.1:1 only"), std::string::npos) << hidden;
  EXPECT_NE(hidden.find("set ELASTIC_BIND"), std::string::npos) << hidden;
  const std::string own = failure("elsewhere", "0.0.0.0:1");
  EXPECT_NE(own.find("this worker listens on 127.0.0.1:"), std::string::npos) << own;
  const std::string here = failure(a.endpoints().host, "127.0.0.1:1");
  EXPECT_EQ(here.find("ELASTIC_BIND"), std::string::npos) << here;
}

TEST_F(LinkerTest, OneFlowIsOpenedInsideAHost) {
  LinkerOptions made = options("a");
  made.streams = 0;
  made.transport = Transport::kTcp;
  LinkingWorker a(made);
  made.incarnation = options("b").incarnation;
  LinkingWorker b(made);
  auto at_a = a.connect({peer("b", b)});
  auto at_b = b.connect({peer("a", a)});
  const auto links = expect_pair(std::move(at_a), std::move(at_b));
  ASSERT_EQ(links.first.size(), 2U);
  EXPECT_EQ(links.first[0]->flows(), 1U);
}

/// There is no link yet: the kernel closes the listeners with the process.
TEST_F(LinkerTest, TheEndOfAPeerIsFoundByItsListener) {
  LinkingWorker a(options("a"));
  auto b = std::make_unique<LinkingWorker>(options("b"));
  const Peer other = peer("b", *b);
  std::future<void> ended = a.watch_for_end(other);
  EXPECT_EQ(ended.wait_for(Milliseconds(300)), std::future_status::timeout) << "it lives";
  b.reset();
  EXPECT_EQ(ended.wait_for(Milliseconds(9000)), std::future_status::ready);
}

TEST_F(LinkerTest, NoPeersAreLinkedAtOnce) {
  LinkingWorker a(options("a"));
  Links links = a.connect({}).get();
  ASSERT_TRUE(links.ok());
  EXPECT_TRUE(links.value().empty());
}

TEST_F(LinkerTest, LinksThatAreGoodAreHandedOutAgain) {
  LinkingWorker a(options("a"));
  LinkingWorker b(options("b"));
  auto at_a = a.connect({peer("b", b)});
  auto at_b = b.connect({peer("a", a)});
  const auto first = expect_pair(std::move(at_a), std::move(at_b));
  LinkingWorker c(options("c"));
  at_a = a.connect({peer("c", c), peer("b", b)});
  at_b = b.connect({peer("c", c), peer("a", a)});
  auto at_c = c.connect({peer("a", a), peer("b", b)});
  Links of_a = at_a.get();
  Links of_b = at_b.get();
  ASSERT_TRUE(of_a.ok() && of_b.ok());
  ASSERT_TRUE(at_c.get().ok());
  EXPECT_EQ(of_a.value()[1], first.first);
  EXPECT_EQ(of_b.value()[1], first.second);
}

TEST_F(LinkerTest, AWorkerThatIsNotInTheViewLosesItsLinks) {
  LinkingWorker a(options("a"));
  LinkingWorker b(options("b"));
  auto at_a = a.connect({peer("b", b)});
  auto at_b = b.connect({peer("a", a)});
  auto links = expect_pair(std::move(at_a), std::move(at_b));
  links.first.clear();
  ASSERT_TRUE(a.connect({}).get().ok());
  EXPECT_TRUE(links.second[0]->hung_up());
}

TEST_F(LinkerTest, ALinkWhosePeerHungUpIsMadeAnew) {
  LinkingWorker a(options("a"));
  LinkingWorker b(options("b"));
  auto at_a = a.connect({peer("b", b)});
  auto at_b = b.connect({peer("a", a)});
  auto links = expect_pair(std::move(at_a), std::move(at_b));
  const LinkPtr old = links.second[0];
  links.first.clear();
  ASSERT_TRUE(a.connect({}).get().ok());  // a forgets b, b does not know
  at_b = b.connect({peer("a", a)});
  at_a = a.connect({peer("b", b)});
  const auto again = expect_pair(std::move(at_a), std::move(at_b));
  ASSERT_FALSE(again.second.empty());
  EXPECT_NE(again.second[0], old);
}

TEST_F(LinkerTest, ADialThatComesBeforeItsViewIsKept) {
  LinkingWorker a(options("a"));
  LinkingWorker b(options("b"));
  auto at_b = b.connect({peer("a", a)});
  Links early = at_b.get();  // b dials; a has not heard of it
  ASSERT_TRUE(early.ok()) << early.status().message();
  auto at_a = a.connect({peer("b", b)});
  Links late = at_a.get();
  ASSERT_TRUE(late.ok()) << late.status().message();
  expect_linked(early.value()[0][1], late.value()[0][1]);
}

TEST_F(LinkerTest, AWrongSecretIsRefusedAndSaysSo) {
  LinkingWorker a(options("a"));
  LinkerOptions other = options("b");
  other.secret = random_secret();
  LinkingWorker b(other);
  auto at_b = b.connect({peer("a", a)}, kRefusalDeadline);
  auto at_a = a.connect({peer("b", b)}, kRefusalDeadline);
  const Status refused = at_b.get().status();
  EXPECT_EQ(refused.code(), Code::kTimeout);
  EXPECT_EQ(refused.peer(), 0);
  EXPECT_NE(refused.message().find("secret"), std::string::npos) << refused.message();
  EXPECT_EQ(at_a.get().status().code(), Code::kTimeout);
}

TEST_F(LinkerTest, AnotherJobIsRefused) {
  LinkingWorker a(options("a"));
  LinkerOptions other = options("b");
  other.job = "another";
  LinkingWorker b(other);
  EXPECT_FALSE(b.connect({peer("a", a)}, kRefusalDeadline).get().ok());
}

TEST_F(LinkerTest, AReusedAddressIsNotTakenForTheOldWorker) {
  LinkingWorker a(options("a"));
  LinkingWorker b(options("b"));
  // a's address, but another incarnation than the one that listens there.
  Peer ghost = peer("a", a);
  ghost.incarnation = "0" + suffix_;
  EXPECT_FALSE(b.connect({ghost}, kRefusalDeadline).get().ok());
}

TEST_F(LinkerTest, APeerThatNeverComesIsNamedAtTheDeadline) {
  LinkingWorker a(options("a"));
  LinkingWorker b(options("b"));
  Peer absent;
  absent.incarnation = "zz-absent" + suffix_;  // greater: it should dial
  absent.endpoints = b.endpoints();
  auto at_a = a.connect({peer("b", b), absent}, kRefusalDeadline);
  auto at_b = b.connect({peer("a", a)});
  EXPECT_TRUE(at_b.get().ok());
  const Status status = at_a.get().status();
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_EQ(status.peer(), 1);
  EXPECT_NE(status.message().find("zz-absen"), std::string::npos) << status.message();
}

TEST_F(LinkerTest, ADeadAddressIsTriedUntilTheDeadline) {
  LinkingWorker b(options("b"));
  Peer gone;
  gone.incarnation = "a" + suffix_;
  gone.endpoints.host = "elsewhere";
  gone.endpoints.tcp = {"127.0.0.1:1"};
  const Status status = b.connect({gone}, kRefusalDeadline).get().status();
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_NE(status.message().find("127.0.0.1:1"), std::string::npos) << status.message();
}

TEST_F(LinkerTest, AddressesThatFailAreSkipped) {
  LinkerOptions tcp_only = options("a");
  tcp_only.transport = Transport::kTcp;
  LinkingWorker a(tcp_only);
  tcp_only.incarnation = "b" + suffix_;
  LinkingWorker b(tcp_only);
  Peer behind = peer("a", a);
  behind.endpoints.tcp.insert(behind.endpoints.tcp.begin(), {"127.0.0.1:1", "nonsense", "[::1]:1"});
  auto at_b = b.connect({behind});
  auto at_a = a.connect({peer("b", b)});
  expect_pair(std::move(at_a), std::move(at_b));
}

TEST_F(LinkerTest, AThirdMemberRelaysToOneThatRefuses) {
  std::vector<std::unique_ptr<LinkingWorker>> workers;
  for (const char* name : {"a", "b", "c"}) {
    LinkerOptions made = options(name);
    made.transport = Transport::kTcp;
    made.streams = 2;
    workers.push_back(std::make_unique<LinkingWorker>(made));
  }
  LinkingWorker& a = *workers[0];
  LinkingWorker& b = *workers[1];
  LinkingWorker& c = *workers[2];
  Peer refusing = peer("a", a);
  refusing.endpoints.tcp = {"127.0.0.1:1"};
  auto at_a = a.connect({peer("b", b), peer("c", c)});
  auto at_b = b.connect({refusing, peer("c", c)});
  auto at_c = c.connect({peer("a", a), peer("b", b)});
  ASSERT_TRUE(at_c.get().ok());
  auto links = expect_pair(std::move(at_a), std::move(at_b));
  ASSERT_EQ(links.first.size(), 2U);
  // A view without the relay: the relayed links end on both sides, so that no worker takes one of
  // them for a live link.
  at_a = a.connect({peer("b", b)}, kLinkDeadline, 2);
  at_b = b.connect({peer("a", a)}, kLinkDeadline, 2);
  const auto direct = expect_pair(std::move(at_a), std::move(at_b));
  ASSERT_EQ(direct.first.size(), 2U);
  EXPECT_NE(direct.first[0], links.first[0]);
  EXPECT_NE(direct.second[0], links.second[0]);
  EXPECT_TRUE(links.first[0]->hung_up());
  EXPECT_TRUE(links.second[0]->hung_up());
}

TEST_F(LinkerTest, WhoIsInAnEarlierViewIsRefusedUntilItHasCaughtUp) {
  LinkingWorker a(options("a"));
  LinkingWorker b(options("b"));
  auto at_a = a.connect({peer("b", b)}, kLinkDeadline, 3);
  const Status refused = b.connect({peer("a", a)}, kRefusalDeadline, 2).get().status();
  EXPECT_EQ(refused.code(), Code::kTimeout);
  EXPECT_NE(refused.message().find("later view"), std::string::npos) << refused.message();
  auto at_b = b.connect({peer("a", a)}, kLinkDeadline, 3);
  expect_pair(std::move(at_a), std::move(at_b));
}

TEST_F(LinkerTest, SharedMemoryToAnotherHostIsRefusedAtOnce) {
  LinkerOptions only_shm = options("a");
  only_shm.transport = Transport::kShm;
  LinkingWorker a(only_shm);
  LinkingWorker b(options("b"));
  Peer elsewhere = peer("b", b);
  elsewhere.endpoints.host = "elsewhere";
  const Status status = a.connect({elsewhere}).get().status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.peer(), 0);
}

TEST_F(LinkerTest, ANewCallDropsTheEarlierOne) {
  LinkingWorker a(options("a"));
  LinkingWorker b(options("b"));
  auto dropped = a.connect({peer("b", b)});
  auto at_a = a.connect({});
  EXPECT_TRUE(at_a.get().ok());
  EXPECT_THROW(static_cast<void>(dropped.get()),
               std::future_error);  // its callback was destroyed uncalled
  auto cancelled = a.connect({peer("b", b)});
  a.cancel();
  EXPECT_THROW(static_cast<void>(cancelled.get()), std::future_error);
}

TEST_F(LinkerTest, AnAddressThatIsNoneIsNamed) {
  LinkerOptions bad = options("a");
  bad.bind_address = "eth0";
  const LinkingWorker a(bad);
  EXPECT_EQ(a.listening().code(), Code::kInvalidArgument);
  EXPECT_NE(a.listening().message().find("eth0"), std::string::npos);
  bad.bind_address = "192.0.2.1";  // no address of this host
  const LinkingWorker b(bad);
  EXPECT_EQ(b.listening().code(), Code::kUnavailable);
  EXPECT_NE(b.listening().message().find("192.0.2.1"), std::string::npos);
}

TEST_F(LinkerTest, ListensInTheNetworkThatIsChosen) {
  LinkerOptions chosen = options("a");
  chosen.network = "127.0.0.0/8";
  chosen.bind_address = "0.0.0.0";
  const LinkingWorker a(chosen);
  ASSERT_TRUE(a.listening().ok()) << a.listening().message();
  ASSERT_EQ(a.endpoints().tcp.size(), 1U);
  EXPECT_TRUE(a.endpoints().tcp.front().starts_with("127.0.0.1:"));
  chosen.network = "240.0.0.0/8";  // no host has such addresses
  const LinkingWorker b(chosen);
  EXPECT_EQ(b.listening().code(), Code::kInvalidArgument);
  EXPECT_NE(b.listening().message().find(
                "ELASTIC_NETWORK: this host has no address in 240.0.0.0/8; it has "),
            std::string::npos)
      << b.listening().message();
}

TEST_F(LinkerTest, TakesTheFirstFreeOfItsPorts) {
  LinkerOptions made = options("a");
  std::unique_ptr<LinkingWorker> first;
  std::string port;
  // Another process may take the port that was free a moment ago.
  for (int tries = 0; tries < 20 && !(first && first->listening().ok()); ++tries) {
    made.ports = {};
    const std::string free = LinkingWorker(made).endpoints().tcp.front();
    port = free.substr(free.rfind(':') + 1);
    made.ports = PortRange::parse(port).value();
    first = std::make_unique<LinkingWorker>(made);
  }
  ASSERT_TRUE(first->listening().ok()) << first->listening().message();
  EXPECT_TRUE(first->endpoints().tcp.front().ends_with(":" + port));
  made.incarnation = "b";
  const LinkingWorker second(made);
  EXPECT_EQ(second.listening().code(), Code::kUnavailable);
  EXPECT_NE(second.listening().message().find("all of the ports " + port + "-" + port +
                                              " are in use (ELASTIC_DATA_PORTS)"),
            std::string::npos)
      << second.listening().message();
}

}  // namespace
}  // namespace elastic::transport
