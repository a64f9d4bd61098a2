// A process at the other end of a link that is killed, and memory from one that must not be
// trusted.
#include <array>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "collectives/transport/mesh.hpp"
#include "collectives/transport/ring/byte_ring.hpp"
#include "collectives/transport/ring/ring_stream.hpp"
#include "collectives/transport/shm/shm.hpp"
#include "transport_contract.hpp"

namespace elastic::transport {
namespace {

using ::testing::IsEmpty;

/// Memory that a process has mapped by a name in a file system. It would stay when the process
/// dies.
std::set<std::string> named_shared_memory(pid_t pid) {
  std::set<std::string> names;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  EXPECT_TRUE(maps.good()) << "process " << pid;
  for (std::string line; std::getline(maps, line);) {
    if (const auto name = line.find("/dev/shm/"); name != std::string::npos) {
      names.insert(line.substr(name));
    }
  }
  return names;
}

class KilledPeer : public testing::TestWithParam<StreamWiring> {
 protected:
  /// Forks a process that has the far end and runs `body` with it until it is killed.
  void start(const std::function<void(Link&)>& body) {
    std::vector<StreamPtr> near;
    std::vector<StreamPtr> far;
    for (std::size_t i = 0; i < GetParam().streams; ++i) {
      StreamPair pair = GetParam().pair();
      near.push_back(std::move(pair.first));
      far.push_back(std::move(pair.second));
    }
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      near.clear();
      Link link(std::move(far), "parent");
      body(link);
      ::_exit(0);
    }
    far.clear();
    link_ = std::make_shared<Link>(std::move(near), "child");
  }
  void TearDown() override {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  pid_t child_ = -1;
  LinkPtr link_;
};

TEST_P(KilledPeer, IsLostPromptlyWhileWeSleep) {
  start([](Link& link) {
    link.begin(tag_at(0), kCall);
    link.send(as_payload("hello"));
    for (;;) {
      bool moved = false;
      (void)link.progress(moved);
      ::pause();
    }
  });
  Mesh mesh(0, {nullptr, link_});
  mesh.begin(tag_at(0), kCall);
  ByteVector hello(5);
  ByteVector never(5);
  link_->receive({hello});
  link_->receive({never});
  ASSERT_TRUE(mesh.run_until([&] { return link_->received() == 1; }).ok());
  EXPECT_THAT(named_shared_memory(child_), IsEmpty());
  EXPECT_THAT(named_shared_memory(::getpid()), IsEmpty());
  ::kill(child_, SIGKILL);
  const Status status = mesh.run_until([] { return false; });
  EXPECT_EQ(status.code(), Code::kPeerLost) << status.message();
  EXPECT_EQ(status.peer(), 1);
  // The peer's end has ended the wait, and not the limit for a silent network.
  EXPECT_EQ(status.message().find("network"), std::string::npos) << status.message();
}

TEST_P(KilledPeer, IsLostInTheMiddleOfAMessage) {
  constexpr std::size_t kBytes = 64 << 20;
  start([](Link& link) {
    const ByteVector endless(kBytes);
    link.begin(tag_at(0), kCall);
    link.send(endless);
    for (;;) {
      bool moved = false;
      if (!link.progress(moved).ok()) ::_exit(1);
    }
  });
  Mesh mesh(0, {nullptr, link_});
  mesh.begin(tag_at(0), kCall);
  ByteVector into(kBytes);
  link_->receive({into});
  bool moved = false;
  while (!moved) ASSERT_TRUE(mesh.progress(moved).ok());
  ::kill(child_, SIGKILL);
  const Status status = mesh.run_until([&] { return link_->received() == 1; });
  if (status.ok()) GTEST_FAIL() << "64 MiB arrived before the kill";
  EXPECT_EQ(status.code(), Code::kPeerLost) << status.message();
}

TEST_P(KilledPeer, IsLostToAWriterThatWaitsForRoom) {
  start([](Link&) {
    for (;;) ::pause();
  });
  Mesh mesh(0, {nullptr, link_});
  mesh.begin(tag_at(0), kCall);
  const ByteVector endless(64 << 20);
  link_->send(endless);
  bool moved = true;
  while (moved) {
    moved = false;
    ASSERT_TRUE(mesh.progress(moved).ok());
  }
  ::kill(child_, SIGKILL);
  EXPECT_EQ(mesh.run_until([&] { return link_->complete(); }).code(), Code::kPeerLost);
}

INSTANTIATE_TEST_SUITE_P(Every, KilledPeer, testing::ValuesIn(stream_wirings()), wiring_name);

/// One end of a ring in order, the other written to by the test.
class BrokenPeer : public testing::Test {
 protected:
  void SetUp() override {
    auto memory = RingMemory::create(kWiringRingBytes);
    ASSERT_TRUE(memory.ok());
    memory_ = memory.value();
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    far_bell_.reset(ends[1]);
    stream_ = std::make_unique<RingStream>(memory_, true, UniqueFd(ends[0]), "shm");
  }

  std::shared_ptr<RingMemory> memory_;
  UniqueFd far_bell_;
  StreamPtr stream_;
};

TEST_F(BrokenPeer, ACursorOutOfRangeIsAProtocolError) {
  memory_->control(1).written.store(memory_->ring_bytes() + 1);
  EXPECT_EQ(stream_->peek(1).status().code(), Code::kProtocol);
  ByteVector into(10);
  EXPECT_EQ(stream_->read(into).status().code(), Code::kProtocol);
}

TEST_F(BrokenPeer, ACursorThatGoesBackIsAProtocolError) {
  memory_->control(1).written.store(100);
  ASSERT_TRUE(stream_->peek(100).ok());
  stream_->consume(100);
  memory_->control(1).written.store(50);
  EXPECT_EQ(stream_->peek(1).status().code(), Code::kProtocol);
}

TEST_F(BrokenPeer, TakingWhatWasNotWrittenIsAProtocolError) {
  const ByteVector full(memory_->ring_bytes());
  const std::array<std::span<const std::byte>, 1> parts = {full};
  ASSERT_EQ(stream_->write(parts).value(), full.size());
  memory_->control(0).taken.store(full.size() + 1);
  EXPECT_EQ(stream_->write(parts).status().code(), Code::kProtocol);
}

TEST(OfferedMemory, ThatCouldShrinkOrHasAnotherSizeIsRefused) {
  const auto memory_of = [](std::size_t bytes, int seals) {
    UniqueFd file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
    return RingMemory::open(std::move(file));
  };
  const std::size_t kGood = RingMemory::file_bytes(kWiringRingBytes);
  EXPECT_TRUE(memory_of(kGood, F_SEAL_SHRINK | F_SEAL_GROW).ok());
  EXPECT_EQ(memory_of(kGood, 0).status().code(), Code::kProtocol);
  EXPECT_EQ(memory_of(kGood + 1, F_SEAL_SHRINK).status().code(), Code::kProtocol);
  EXPECT_EQ(memory_of(0, F_SEAL_SHRINK).status().code(), Code::kProtocol);
  EXPECT_EQ(memory_of(2 * 4096, F_SEAL_SHRINK).status().code(), Code::kProtocol);
}

/// Sends the offer of a shared memory dialer with these descriptors, and accepts it.
Status accept_offer_of(const std::vector<int>& descriptors) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd far(ends[1]);
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  char byte = 'M';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (const std::size_t bytes = descriptors.size() * sizeof(int); bytes > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  }
  EXPECT_EQ(::sendmsg(far.get(), &message, 0), 1);
  return accept_shm(UniqueFd(ends[0]), nullptr).status();
}

TEST(OfferedMemory, ThatIsNoneIsRefusedAndItsDescriptorsClosed) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = descriptors();
  EXPECT_EQ(accept_offer_of({0, 1, 2}).code(), Code::kProtocol);
  EXPECT_EQ(accept_offer_of({0}).code(), Code::kProtocol);
  EXPECT_EQ(accept_offer_of({}).code(), Code::kProtocol);
  EXPECT_EQ(descriptors(), before);
}

TEST(OfferedMemory, AnArenaThatCouldShrinkIsRefused) {
  const auto rings = RingMemory::create(kWiringRingBytes);
  const auto arena = Arena::create();
  ASSERT_TRUE(rings.ok() && arena.ok());
  EXPECT_TRUE(accept_offer_of({rings.value()->fd(), arena.value()->fd()}).ok());
  const UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const Status refused = accept_offer_of({rings.value()->fd(), unsealed.get()});
  EXPECT_EQ(refused.code(), Code::kProtocol);
  EXPECT_NE(refused.message().find("could shrink"), std::string::npos) << refused.message();
}

}  // namespace
}  // namespace elastic::transport
