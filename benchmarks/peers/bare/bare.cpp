#include "benchmarks/peers/bare/bare.hpp"

#include "benchmarks/peers/bare/shm_peer.hpp"
#include "benchmarks/peers/bare/tcp_peer.hpp"

namespace elastic::bench {

namespace {

Status check(const PeerStart& start) {
  if (start.operation != "allreduce") {
    return Status(Code::kInvalidArgument, "only allreduce is measured bare; " + start.operation +
                                              ": --backend native or mpi:direct");
  }
  if (start.ranks < 2) {
    return Status(Code::kInvalidArgument,
                  "a single rank has no other rank to exchange data with: "
                  "start at least 2");
  }
  return {};
}

Result<std::unique_ptr<Peer>> open(const PeerStart& start) {
  if (Status status = check(start); !status.ok()) return status;
  if (start.variant == "tcp") return open_tcp_peer(start);
  const bool streams = start.variant.ends_with("streaming");
  return open_shm_peer(start, {streams ? kernels::Store::kNonTemporal : kernels::Store::kTemporal,
                               start.variant.starts_with("kept-")});
}

std::string describe() {
  return "elastic's loops with the least protocol around them";
}

}  // namespace

const PeerModule& bare_peers() {
  static const PeerModule kModule{{"", describe}, open};
  return kModule;
}

}  // namespace elastic::bench
