// Workers on hosts of their own, which lose each other. Needs root, for the network namespaces.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "benchmarks/network/host_network.hpp"
#include "benchmarks/network/link_cut.hpp"
#include "collectives/transport/mesh.hpp"
#include "linking_worker.hpp"

namespace elastic::transport {
namespace {

using network::HostNetwork;

/// Worker a on host 0, b on host 1 and so on.
class CutLinks : public LinkerTest {
 protected:
  void SetUp() override {
    const std::string missing = HostNetwork::missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
  void start(int count) {
    expect(HostNetwork::make(count, network_));
    for (int host = 0; host < count; ++host) {
      const std::string space = network_.space(host);
      // The first of its addresses, and no other host reaches it.
      expect(network::command_on_host(
          space, "ip addr add 10.97." + std::to_string(host) + ".1/24 dev lo"));
      expect(network::run_on_host(space, [&]() -> Status {
        LinkerOptions made = options(std::string(1, static_cast<char>('a' + host)));
        made.transport = Transport::kTcp;
        made.bind_address = "0.0.0.0";
        workers_.push_back(std::make_unique<LinkingWorker>(made));
        return {};
      }));
    }
  }
  LinkingWorker& worker(char name) { return *workers_[static_cast<std::size_t>(name - 'a')]; }
  Peer to(char name) { return peer(std::string(1, name), worker(name)); }
  void cut_one_way(char from, char to) {
    network::LinkCut cut;
    expect(network::LinkCut::open(network_.space(from - 'a'), HostNetwork::address(to - 'a'), cut));
    cut.strike();
    expect(cut.confirm());
  }
  void cut(char one, char other) {
    cut_one_way(one, other);
    cut_one_way(other, one);
  }
  static void expect(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }

  HostNetwork network_;
  std::vector<std::unique_ptr<LinkingWorker>> workers_;
};

TEST_F(CutLinks, ASilentLinkIsLostToBothEndsOfAnOperation) {
  start(2);
  auto at_a = worker('a').connect({to('b')});
  auto at_b = worker('b').connect({to('a')});
  const auto links = expect_pair(std::move(at_a), std::move(at_b));
  const LinkPtr& sender = links.first[0];
  const LinkPtr& receiver = links.second[0];
  for (const LinkPtr& link : {sender, receiver}) link->begin({1, 2, OpTag::kNormal}, kCall);
  std::vector<std::byte> into(4096);
  receiver->receive({into});
  cut('a', 'b');
  const TimePoint start = Clock::now();
  Status of_receiver;
  std::thread other([&] {
    Mesh mesh(1, {receiver, nullptr});
    of_receiver = mesh.run_until([&] { return receiver->complete(); });
  });
  sender->send(into);
  Mesh mesh(0, {nullptr, sender});
  const Status of_sender = mesh.run_until([] { return false; });
  const Duration took = Clock::now() - start;
  other.join();
  EXPECT_EQ(of_sender.code(), Code::kPeerLost);
  EXPECT_NE(of_sender.message().find("network"), std::string::npos) << of_sender.message();
  EXPECT_EQ(of_receiver.code(), Code::kPeerLost) << of_receiver.message();
  EXPECT_LT(took, std::chrono::seconds(20));
}

TEST_F(CutLinks, ANoteThatIsNeverAnsweredWakesAnIdleThread) {
  start(2);
  auto at_a = worker('a').connect({to('b')});
  auto at_b = worker('b').connect({to('a')});
  const auto links = expect_pair(std::move(at_a), std::move(at_b));
  cut_one_way('a', 'b');
  const LinkPtr& link = links.first[1];
  Mesh mesh(0, {nullptr, link});
  link->send_note(1, std::vector<std::byte>(10));
  Status status;
  while (status.ok()) {
    bool moved = false;
    status = mesh.progress(moved);
    if (status.ok() && !moved) status = mesh.wait();
  }
  EXPECT_EQ(status.code(), Code::kPeerLost) << status.message();
}

/// Whether the link is lost to a thread that waits for a message.
Code end_of(const LinkPtr& link) {
  Mesh mesh(0, {nullptr, link});
  return mesh.run_until([] { return false; }).code();
}

TEST_F(CutLinks, AThirdMemberRelaysWhatTheNetworkDoesNotCarry) {
  start(3);
  cut('a', 'b');
  auto at_a = worker('a').connect({to('b'), to('c')});
  auto at_b = worker('b').connect({to('a'), to('c')});
  auto at_c = worker('c').connect({to('a'), to('b')});
  Links of_c = at_c.get();
  ASSERT_TRUE(of_c.ok()) << of_c.status().message();
  const auto links = expect_pair(std::move(at_a), std::move(at_b));
  ASSERT_EQ(links.first.size(), 2U);
  EXPECT_STREQ(links.first[0]->transport(), "tcp");
  // Ends c's links, as the end of its process would.
  workers_[2].reset();
  for (const LinkPtr& link : {links.first[0], links.second[0]}) {
    link->begin({1, 9, OpTag::kNormal}, kCall);
    EXPECT_EQ(end_of(link), Code::kPeerLost);
  }
}

/// The ends' kernels are answered by the relay's.
TEST_F(CutLinks, ARelayThatIsCutOffItselfEndsTheLink) {
  start(3);
  cut('a', 'b');
  auto at_a = worker('a').connect({to('b'), to('c')});
  auto at_b = worker('b').connect({to('a'), to('c')});
  auto at_c = worker('c').connect({to('a'), to('b')});
  ASSERT_TRUE(at_c.get().ok());
  const auto links = expect_pair(std::move(at_a), std::move(at_b));
  ASSERT_EQ(links.first.size(), 2U);
  cut('c', 'b');
  const std::vector<std::byte> lost(100);
  links.first[0]->begin({1, 9, OpTag::kNormal}, kCall);
  links.first[0]->send(lost);
  EXPECT_EQ(end_of(links.first[0]), Code::kPeerLost);
}

}  // namespace
}  // namespace elastic::transport
