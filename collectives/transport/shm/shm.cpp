#include "collectives/transport/shm/shm.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include <sys/socket.h>

#include "collectives/transport/ring/ring_stream.hpp"

namespace elastic::transport {

namespace {

constexpr char kOffer = 'M';

/// A message of one byte with room for one descriptor.
struct Envelope {
  char byte = kOffer;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};

  Envelope() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    // Of more descriptors than one the kernel drops the rest.
    message.msg_controllen = CMSG_LEN(sizeof(int));
  }
};

}  // namespace

Result<StreamPtr> offer_shm(UniqueFd socket, std::size_t ring_bytes) {
  Result<std::shared_ptr<RingMemory>> memory = RingMemory::create(ring_bytes);
  if (!memory.ok()) return memory.status();
  Envelope envelope;
  cmsghdr* header = CMSG_FIRSTHDR(&envelope.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = memory.value()->fd();
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (::sendmsg(socket.get(), &envelope.message, MSG_NOSIGNAL) != 1) {
    return Status(Code::kPeerLost,
                  std::string("cannot pass shared memory on: ") + std::strerror(errno));
  }
  return StreamPtr(std::make_unique<RingStream>(memory.value(), true, std::move(socket), "shm"));
}

Result<StreamPtr> accept_shm(UniqueFd socket) {
  Envelope envelope;
  const ssize_t got = ::recvmsg(socket.get(), &envelope.message, MSG_CMSG_CLOEXEC);
  if (got <= 0) return Status(Code::kPeerLost, "the peer went before it passed shared memory on");
  const cmsghdr* header = CMSG_FIRSTHDR(&envelope.message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return Status(Code::kProtocol, "the peer passed no shared memory where it should");
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  UniqueFd file(fd);
  if (envelope.byte != kOffer || (envelope.message.msg_flags & MSG_CTRUNC) != 0) {
    return Status(Code::kProtocol, "the peer passed something else than shared memory");
  }
  Result<std::shared_ptr<RingMemory>> memory = RingMemory::open(std::move(file));
  if (!memory.ok()) return memory.status();
  return StreamPtr(std::make_unique<RingStream>(memory.value(), false, std::move(socket), "shm"));
}

}  // namespace elastic::transport
