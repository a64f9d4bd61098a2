// A job's two keys in a real etcd: one leader, and writes of that leader alone.
#include "rendezvous/etcd/etcd_job.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "standby/etcd_cluster.hpp"

namespace elastic::etcd {
namespace {

using testing::EtcdCluster;

constexpr Milliseconds kLength{60000};

/// Waits for what a coroutine returns.
template <typename Result>
Result await(boost::asio::awaitable<Result> work) {
  std::optional<Result> result;
  boost::asio::io_context io(1);
  const auto run = [&]() -> boost::asio::awaitable<void> { result = co_await std::move(work); };
  boost::asio::co_spawn(io, run, boost::asio::detached);
  io.run();
  return result.value();
}

TimePoint soon() {
  return Clock::now() + testing::kLong;
}

class EtcdJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdCluster::is_there()) GTEST_SKIP() << "etcd is not installed (package etcd-server)";
    etcd_.emplace(scratch_.path(), 1);
    ASSERT_TRUE(etcd_->serves()) << etcd_->text();
    EtcdOptions options;
    options.members = {etcd_->address(0)};
    client_ = EtcdClient::create(options).value();
    job_.emplace(client_, "job");
  }

  /// A lease, and the job's entries after a campaign with it.
  std::pair<Lease, JobEntries> campaign(const std::string& who) {
    const Lease lease = await(job_->grant(kLength, soon())).value();
    return {lease, await(job_->campaign(lease, who, soon())).value()};
  }

  testing::ScratchFolder scratch_;
  std::optional<EtcdCluster> etcd_;
  std::shared_ptr<EtcdClient> client_;
  std::optional<EtcdJob> job_;
};

TEST_F(EtcdJobTest, HasOneLeader) {
  EXPECT_FALSE(await(job_->leader(soon())).value().has_value());
  const auto [lease, entries] = campaign("a");
  EXPECT_EQ(entries.leader->lease, lease.id);
  const auto [other_lease, other_entries] = campaign("b");
  EXPECT_EQ(other_entries.leader->lease, lease.id);
  EXPECT_EQ(await(job_->leader(soon())).value()->value, "a");
  // A campaign whose answer was lost, and that is made again, is won.
  EXPECT_EQ(await(job_->campaign(lease, "a", soon())).value().leader->lease, lease.id);
}

TEST_F(EtcdJobTest, TakesWritesOfItsLeaderAlone) {
  auto [lease, former] = campaign("a");
  former.journal = await(job_->write(former, "one", soon())).value();
  ASSERT_TRUE(await(job_->revoke(lease, soon())).ok());
  const auto [next_lease, next] = campaign("b");
  ASSERT_EQ(next.leader->lease, next_lease.id);
  EXPECT_EQ(next.journal.value, "one");
  EXPECT_EQ(await(job_->write(former, "late", soon())).status().code(), Code::kStopped);
  ASSERT_TRUE(await(job_->write(next, "two", soon())).ok());
  EXPECT_EQ(await(job_->write(former, "late", soon())).status().code(), Code::kStopped);
  EXPECT_EQ(await(job_->campaign(next_lease, "b", soon())).value().journal.value, "two");
}

/// A copy of a write that arrives after the next one.
TEST_F(EtcdJobTest, UndoesNothingByALateCopy) {
  const auto [lease, first] = campaign("a");
  JobEntries second = first;
  second.journal = await(job_->write(first, "one", soon())).value();
  EXPECT_EQ(await(job_->write(first, "one", soon())).value().modified, second.journal.modified);
  ASSERT_TRUE(await(job_->write(second, "two", soon())).ok());
  EXPECT_EQ(await(job_->write(first, "one", soon())).value().value, "two");
  EXPECT_EQ(await(job_->campaign(lease, "a", soon())).value().journal.value, "two");
}

TEST_F(EtcdJobTest, TellsOfALeaseThatHasEnded) {
  const auto [lease, entries] = campaign("a");
  EXPECT_EQ(await(job_->renew(lease, soon())).value(), lease.length);
  ASSERT_TRUE(await(job_->revoke(lease, soon())).ok());
  EXPECT_EQ(await(job_->renew(lease, soon())).value(), Milliseconds(0));
}

/// The next member is asked where one does not answer.
TEST_F(EtcdJobTest, AsksTheNextMember) {
  const testing::ReservedPort absent;
  EtcdOptions options;
  options.members = {absent.address(), etcd_->address(0)};
  EtcdJob job(EtcdClient::create(options).value(), "job");
  EXPECT_TRUE(await(job.leader(soon())).ok());
}

TEST_F(EtcdJobTest, TakesNoViewThatIsTooLarge) {
  const auto [lease, entries] = campaign("a");
  for (const std::size_t bytes : {std::size_t{1600000}, std::size_t{3000000}}) {
    const Status status = await(job_->write(entries, std::string(bytes, 'x'), soon())).status();
    EXPECT_EQ(status.code(), Code::kInternal) << status.message();
    EXPECT_THAT(status.message(), ::testing::HasSubstr("--max-request-bytes"));
  }
}

}  // namespace
}  // namespace elastic::etcd
