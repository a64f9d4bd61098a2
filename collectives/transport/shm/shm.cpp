#include "collectives/transport/shm/shm.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "collectives/transport/ring/ring_stream.hpp"

namespace elastic::transport {

namespace {

constexpr char kOffer = 'M';
constexpr char kAnswer = 'A';
/// The ring's and the arena's.
constexpr std::size_t kMostDescriptors = 2;

/// A message of one byte with room for descriptors.
struct Envelope {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr message{};

  explicit Envelope(std::size_t descriptors) {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptors == 0) return;
    message.msg_control = control;
    // The kernel drops further descriptors.
    message.msg_controllen = CMSG_LEN(descriptors * sizeof(int));
  }
};

Status send(int socket, char kind, std::span<const int> descriptors) {
  Envelope envelope(descriptors.size());
  envelope.byte = kind;
  if (!descriptors.empty()) {
    cmsghdr* const header = CMSG_FIRSTHDR(&envelope.message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  if (::sendmsg(socket, &envelope.message, MSG_NOSIGNAL) == 1) return {};
  return Status(Code::kPeerLost,
                std::string("cannot pass shared memory on: ") + std::strerror(errno));
}

/// At most `most` descriptors.
Result<std::vector<UniqueFd>> receive(int socket, char kind, std::size_t most) {
  Envelope envelope(most);
  const ssize_t got = ::recvmsg(socket, &envelope.message, MSG_CMSG_CLOEXEC);
  if (got <= 0) return Status(Code::kPeerLost, "the peer went before it passed shared memory on");
  std::vector<UniqueFd> files;
  const cmsghdr* const header = CMSG_FIRSTHDR(&envelope.message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    std::array<int, kMostDescriptors> descriptors{};
    const std::size_t bytes = header->cmsg_len - CMSG_LEN(0);
    std::memcpy(descriptors.data(), CMSG_DATA(header), bytes);
    for (std::size_t i = 0; i < bytes / sizeof(int); ++i) files.emplace_back(descriptors[i]);
  }
  if (envelope.byte != kind || (envelope.message.msg_flags & MSG_CTRUNC) != 0) {
    return Status(Code::kProtocol, "the peer passed something else than shared memory");
  }
  return files;
}

/// From `files[index]`; null where the peer has none.
Result<std::unique_ptr<ArenaView>> arena_in(std::vector<UniqueFd>& files, std::size_t index) {
  if (index >= files.size()) return std::unique_ptr<ArenaView>();
  return ArenaView::open(std::move(files[index]));
}

}  // namespace

Result<std::shared_ptr<RingMemory>> offer_shm(int socket, std::size_t ring_bytes,
                                              const Arena* arena) {
  Result<std::shared_ptr<RingMemory>> memory = RingMemory::create(ring_bytes);
  if (!memory.ok()) return memory;
  std::vector<int> descriptors = {memory.value()->fd()};
  if (arena != nullptr) descriptors.push_back(arena->fd());
  if (Status status = send(socket, kOffer, descriptors); !status.ok()) return status;
  memory.value()->close_file();
  return memory;
}

Result<StreamPtr> accept_shm(UniqueFd socket, const Arena* arena) {
  auto files = receive(socket.get(), kOffer, kMostDescriptors);
  if (!files.ok()) return files.status();
  if (files.value().empty()) {
    return Status(Code::kProtocol, "the peer passed no shared memory where it should");
  }
  Result<std::shared_ptr<RingMemory>> memory = RingMemory::open(std::move(files.value().front()));
  if (!memory.ok()) return memory.status();
  Result<std::unique_ptr<ArenaView>> theirs = arena_in(files.value(), 1);
  if (!theirs.ok()) return theirs.status();
  std::vector<int> own;
  if (arena != nullptr) own.push_back(arena->fd());
  if (Status status = send(socket.get(), kAnswer, own); !status.ok()) return status;
  return StreamPtr(std::make_unique<RingStream>(memory.value(), false, std::move(socket), "shm",
                                                std::move(theirs).value()));
}

Result<StreamPtr> conclude_shm(UniqueFd socket, std::shared_ptr<RingMemory> memory) {
  auto files = receive(socket.get(), kAnswer, 1);
  if (!files.ok()) return files.status();
  Result<std::unique_ptr<ArenaView>> theirs = arena_in(files.value(), 0);
  if (!theirs.ok()) return theirs.status();
  return StreamPtr(std::make_unique<RingStream>(std::move(memory), true, std::move(socket), "shm",
                                                std::move(theirs).value()));
}

}  // namespace elastic::transport
