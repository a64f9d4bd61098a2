#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <sys/socket.h>

#include "base/status.hpp"
#include "base/unique_fd.hpp"
#include "collectives/transport/ring/ring_stream.hpp"
#include "collectives/transport/stream.hpp"

namespace elastic::transport {

/// Two connected streams within this process, for ranks that are threads of a test.
inline Result<StreamPair> make_inproc_pair(std::size_t ring_bytes) {
  Result<std::shared_ptr<RingMemory>> memory = RingMemory::create(ring_bytes);
  if (!memory.ok()) return memory.status();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Status(Code::kUnavailable,
                  std::string("cannot make a socket pair: ") + std::strerror(errno));
  }
  return StreamPair(
      std::make_unique<RingStream>(memory.value(), true, UniqueFd(ends[0]), "inproc"),
      std::make_unique<RingStream>(memory.value(), false, UniqueFd(ends[1]), "inproc"));
}

}  // namespace elastic::transport
