// A worker without descriptors for its links says so, and blames no peer.
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "collectives/transport/mesh.hpp"
#include "fault/descriptor_limit.hpp"
#include "linking_worker.hpp"

namespace elastic::transport {
namespace {

using elastic::testing::NoMoreDescriptors;
using ::testing::HasSubstr;

class LinkerDescriptorsTest : public LinkerTest {
 protected:
  LinkerOptions tcp(const std::string& incarnation) {
    LinkerOptions made = options(incarnation);
    made.transport = Transport::kTcp;
    made.on_short = [this](const Status& why) { short_.set_value(why); };
    return made;
  }

  std::promise<Status> short_;
};

TEST_F(LinkerDescriptorsTest, AViewThatNeedsMoreThanThereAreIsNotEntered) {
  LinkingWorker a(tcp("a"));
  LinkingWorker b(tcp("b"));
  Status status;
  {
    const NoMoreDescriptors none(::getpid());
    status = a.connect({peer("b", b)}).get().status();
  }
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.peer(), -1);
  EXPECT_THAT(status.message(), HasSubstr("a view of 2 members needs 2 more"));
  auto at_a = a.connect({peer("b", b)});
  auto at_b = b.connect({peer("a", a)});
  expect_pair(std::move(at_a), std::move(at_b));
}

TEST_F(LinkerDescriptorsTest, AViewThatNeedsNoneIsEnteredWithoutAny) {
  LinkingWorker a(tcp("a"));
  LinkingWorker b(tcp("b"));
  auto at_a = a.connect({peer("b", b)});
  auto at_b = b.connect({peer("a", a)});
  expect_pair(std::move(at_a), std::move(at_b));
  const NoMoreDescriptors none(::getpid());
  EXPECT_TRUE(a.connect({peer("b", b)}, kLinkDeadline, 2).get().ok());
}

/// In the middle of an operation.
TEST_F(LinkerDescriptorsTest, AnOperationThatNeedsALinkFallsShort) {
  LinkingWorker a(options("a"));
  LinkingWorker b(tcp("b"));
  Peer later = peer("a", a);
  later.at_once = false;
  ASSERT_TRUE(b.connect({later}).get().ok());
  const NoMoreDescriptors none(::getpid());
  auto never = b.request(later);
  const Status why = short_.get_future().get();
  EXPECT_EQ(why.code(), Code::kUnavailable);
  EXPECT_THAT(why.message(), HasSubstr("none is left for a link in a view of 2 members"));
}

/// Threads that move flows could not be woken without descriptors of their own.
TEST_F(LinkerDescriptorsTest, ALargeOperationDoesWithoutThreads) {
  LinkerOptions made = tcp("a");
  made.streams = 3;
  LinkingWorker a(made);
  made.incarnation = options("b").incarnation;
  LinkingWorker b(made);
  auto at_a = a.connect({peer("b", b)});
  auto at_b = b.connect({peer("a", a)});
  const ThreadUse threads{.count = 3, .from_bytes = 1};
  Mesh first(0, {nullptr, at_a.get().value()[0][0]}, std::make_shared<EventFd>(), nullptr, threads);
  Mesh second(1, {at_b.get().value()[0][0], nullptr});
  const std::vector<std::byte> sent(5'000'011, std::byte{7});
  std::vector<std::byte> got(sent.size());
  const NoMoreDescriptors none(::getpid());
  EXPECT_FALSE(FlowThreads(3).valid());
  first.begin({1, 0, OpTag::kNormal}, kCall);
  second.begin({1, 0, OpTag::kNormal}, kCall);
  first.link(1).send(sent);
  second.link(0).receive({got});
  Status received;
  std::thread other(
      [&] { received = second.run_until([&] { return second.link(0).complete(); }); });
  const Status status = first.run_until([&] { return first.link(1).complete(); }, sent.size());
  other.join();
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(received.ok()) << received.message();
  EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace elastic::transport
