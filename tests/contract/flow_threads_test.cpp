// Threads that help to move the bytes of large operations.
#include "collectives/transport/flow_threads.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <poll.h>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/transport/mesh.hpp"
#include "forwarding_stream.hpp"
#include "transport_contract.hpp"

namespace elastic::transport {
namespace {

constexpr std::size_t kFlows = 5;
constexpr std::size_t kThreads = 3;
constexpr std::size_t kMessageBytes = 5'000'011;

/// One end of a connection that records which threads write to it.
class RecordingStream final : public ForwardingStream {
 public:
  using ForwardingStream::ForwardingStream;

  Result<std::size_t> write(std::span<const std::span<const std::byte>> parts) override {
    const auto has_written = [](const RecordingStream* stream) { return stream->wrote_.load(); };
    const bool open = std::ranges::all_of(waits_for_, has_written);
    if (!open && (wrote_ || !writes_once_)) return std::size_t{0};
    Result<std::size_t> written = ForwardingStream::write(parts);
    if (written.ok() && written.value() > 0) {
      const std::scoped_lock lock(mutex_);
      writers_.insert(std::this_thread::get_id());
      wrote_ = true;
    }
    return written;
  }

  /// Takes nothing before `others` have taken something; with `writes_once` the first bytes.
  void wait_for(std::vector<const RecordingStream*> others, bool writes_once = false) {
    waits_for_ = std::move(others);
    writes_once_ = writes_once;
  }
  std::set<std::thread::id> writers() const { return writers_; }

 private:
  std::atomic<bool> wrote_ = false;
  std::vector<const RecordingStream*> waits_for_;
  bool writes_once_ = false;
  std::mutex mutex_;
  std::set<std::thread::id> writers_;
};

/// Two ranks, of which the first has threads. A thread of the test runs the other one.
class FlowThreadsTest : public testing::Test {
 protected:
  FlowThreadsTest() {
    std::vector<StreamPtr> near;
    std::vector<StreamPtr> far;
    for (std::size_t i = 0; i < kFlows; ++i) {
      StreamPair pair = tcp4_pair();
      auto recording = std::make_unique<RecordingStream>(std::move(pair.first));
      streams_.push_back(recording.get());
      near.push_back(std::move(recording));
      far_streams_.push_back(pair.second.get());
      far.push_back(std::move(pair.second));
    }
    near_ = mesh(0, std::move(near), kThreads);
    far_ = mesh(1, std::move(far), 1);
    near_->begin(tag_at(0), kCall);
    far_->begin(tag_at(0), kCall);
  }

  static std::unique_ptr<Mesh> mesh(int rank, std::vector<StreamPtr> streams, std::size_t threads) {
    std::vector<LinkPtr> links(2);
    links[static_cast<std::size_t>(1 - rank)] =
        std::make_shared<Link>(std::move(streams), "the other");
    return std::make_unique<Mesh>(rank, std::move(links), std::make_shared<EventFd>(), nullptr,
                                  ThreadUse{.count = threads, .from_bytes = 1});
  }

  /// Runs both ranks until all that is posted is complete.
  Status run() {
    Status at_far;
    std::thread far([&] { at_far = run(*far_, 0); });
    const Status at_near = run(*near_, 1);
    far.join();
    return at_near.ok() ? at_far : at_near;
  }
  static Status run(Mesh& mesh, int peer) {
    return mesh.run_until([&] { return mesh.link(peer).complete(); }, kMessageBytes);
  }

  std::vector<RecordingStream*> streams_;  // of the first rank
  std::vector<Stream*> far_streams_;
  std::unique_ptr<Mesh> near_;
  std::unique_ptr<Mesh> far_;
  const ByteVector message_ = pattern(kMessageBytes, 1);
  ByteVector got_ = ByteVector(kMessageBytes);
};

TEST(Sleeper, DoesNotSleepWhenItWasToldMeanwhile) {
  Sleeper sleeper;
  const std::uint64_t seen = sleeper.told();
  sleeper.tell();
  EXPECT_FALSE(sleeper.prepare(seen));
  sleeper.finish(sleeper.watched());
  EXPECT_TRUE(sleeper.prepare(sleeper.told()));
  sleeper.finish(sleeper.watched());
}

TEST(Sleeper, IsWokenAndSleepsAgain) {
  Sleeper sleeper;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(sleeper.prepare(sleeper.told()));
    pollfd watched = sleeper.watched();
    EXPECT_EQ(::poll(&watched, 1, 0), 0);
    sleeper.tell();
    EXPECT_EQ(::poll(&watched, 1, 10'000), 1);
    sleeper.finish(watched);
  }
}

TEST_F(FlowThreadsTest, EachFlowIsMovedByOneOfThemAndAllTakePart) {
  // No flow goes on before all have begun, so that none can take all of the message.
  for (RecordingStream* const stream : streams_) {
    stream->wait_for({streams_.begin(), streams_.end()}, /*writes_once=*/true);
  }
  far_->link(0).receive({got_});
  near_->link(1).send(message_);
  const Status status = run();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(got_ == message_);

  std::set<std::thread::id> all;
  for (std::size_t share = 0; share < kThreads; ++share) {
    std::set<std::thread::id> of_share;
    for (std::size_t flow = share; flow < kFlows; flow += kThreads) {
      of_share.merge(streams_[flow]->writers());
    }
    EXPECT_LE(of_share.size(), 1U) << "share " << share;
    all.merge(of_share);
  }
  EXPECT_EQ(all.size(), kThreads);
  EXPECT_FALSE(streams_[2]->writers().contains(std::this_thread::get_id()));
}

TEST_F(FlowThreadsTest, AreToldOfWhatIsPostedLater) {
  for (const std::size_t flow : {0U, 1U, 3U, 4U}) streams_[flow]->wait_for({streams_[2]});
  ByteVector first(64);
  near_->link(1).receive({first});
  far_->link(0).receive({got_});
  far_->link(0).send(std::span(message_).first(64));
  Status at_far;
  std::thread far([&] { at_far = run(*far_, 0); });
  bool posted = false;
  const Status status = near_->run_until(
      [&] {
        if (near_->link(1).received() == 1 && !std::exchange(posted, true)) {
          near_->link(1).send(message_);
        }
        return posted && near_->link(1).complete();
      },
      kMessageBytes);
  far.join();
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(at_far.ok()) << at_far.message();
  EXPECT_TRUE(got_ == message_);
}

TEST_F(FlowThreadsTest, TheOwnerFindsTheFailureOfAnotherThread) {
  near_->link(1).receive({got_});
  write_frame(*far_streams_[1], 0, kMessageBytes, ByteVector(16));
  const Status status = run(*near_, 1);
  EXPECT_EQ(status.code(), Code::kProtocol) << status.message();
  EXPECT_TRUE(near_->link(1).broken());
}

/// Memory that cannot be kept as it was.
class NoMemory final : public Overwriting {
 public:
  void about_to(std::span<std::byte> /*memory*/) override { throw std::bad_alloc(); }
};

TEST_F(FlowThreadsTest, TheOwnerThrowsWhatAnotherThreadHasThrown) {
  NoMemory no_memory;
  near_->link(1).receive({.into = got_, .overwriting = &no_memory});
  std::thread far([&] {
    far_->link(0).send(message_);
    (void)run(*far_, 0);
  });
  EXPECT_THROW((void)run(*near_, 1), std::bad_alloc);
  near_->abandon();
  near_.reset();  // ends the other's wait
  far.join();
}

TEST_F(FlowThreadsTest, AnAbortEndsTheWaitOfAll) {
  near_->link(1).receive({got_});
  std::thread aborting([&] { near_->abort(); });
  EXPECT_EQ(run(*near_, 1).code(), Code::kAborted);
  aborting.join();
}

TEST_F(FlowThreadsTest, OperationFollowsOperation) {
  for (std::uint64_t position = 1; position < 50; ++position) {
    near_->begin(tag_at(position), kCall);
    far_->begin(tag_at(position), kCall);
    const std::size_t bytes = position * 5237;
    const auto sent = std::span(message_).first(bytes);
    ByteVector back(bytes);
    far_->link(0).receive({std::span(got_).first(bytes)});
    near_->link(1).receive({back});
    near_->link(1).send(sent);
    far_->link(0).send(sent);
    const Status status = run();
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(std::ranges::equal(sent, std::span(got_).first(bytes)));
    ASSERT_TRUE(std::ranges::equal(sent, back));
  }
}

}  // namespace
}  // namespace elastic::transport
