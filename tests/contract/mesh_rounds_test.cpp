// Which links an operation looks at while it runs.
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/transport/mesh.hpp"
#include "forwarding_stream.hpp"
#include "transport_contract.hpp"

namespace elastic::transport {
namespace {

/// Counts the looks at what has arrived.
class CountingStream final : public ForwardingStream {
 public:
  using ForwardingStream::ForwardingStream;

  Result<std::span<const std::byte>> peek(std::size_t at_least) override {
    ++looks_;
    return ForwardingStream::peek(at_least);
  }
  int looks() const { return looks_; }

 private:
  int looks_ = 0;
};

/// Rank 0 has links with ranks 1 and 2, whose other ends are the test's.
class MeshRounds : public testing::Test {
 protected:
  MeshRounds() {
    std::vector<LinkPtr> links{nullptr};
    for (std::size_t peer = 1; peer <= 2; ++peer) {
      StreamPair pair = tcp4_pair();
      auto counting = std::make_unique<CountingStream>(std::move(pair.first));
      streams_.push_back(counting.get());
      links.push_back(link(std::move(counting)));
      peers_.push_back(link(std::move(pair.second)));
      peers_.back()->begin(tag_at(0), kCall);
    }
    mesh_ = std::make_unique<Mesh>(0, std::move(links));
    mesh_->begin(tag_at(0), kCall);
  }

  static LinkPtr link(StreamPtr stream) {
    std::vector<StreamPtr> streams;
    streams.push_back(std::move(stream));
    return std::make_shared<Link>(std::move(streams), "the other");
  }

  std::vector<CountingStream*> streams_;  // of ranks 1 and 2
  std::vector<LinkPtr> peers_;
  std::unique_ptr<Mesh> mesh_;
};

TEST_F(MeshRounds, LookAtLinksWithNothingPostedInOneOfSixteen) {
  constexpr std::size_t kMessages = 160;
  std::vector<std::byte> got(1);
  const std::vector<std::byte> sent(1);
  int rounds = 0;
  const Status status = mesh_->run_until([&] {
    Link& near = mesh_->link(1);
    if (near.received() == kMessages) return true;
    ++rounds;
    if (near.complete()) {
      near.receive({got});
      peers_[0]->send(sent);
      bool moved = false;
      EXPECT_TRUE(peers_[0]->progress(moved).ok());
    }
    return false;
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_GE(streams_[0]->looks(), static_cast<int>(kMessages));
  EXPECT_GE(streams_[1]->looks(), 1);
  EXPECT_LE(streams_[1]->looks(), rounds / 16 + 1);
}

TEST_F(MeshRounds, FindAPeerLostThatNothingIsPostedFor) {
  std::vector<std::byte> got(1);
  mesh_->link(1).receive({got});
  peers_[1].reset();
  const Status status = mesh_->run_until([] { return false; });
  EXPECT_EQ(status.code(), Code::kPeerLost) << status.message();
  EXPECT_EQ(status.peer(), 2);
}

}  // namespace
}  // namespace elastic::transport
