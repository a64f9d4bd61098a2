#include "collectives/transport/tcp/silence_watch.hpp"

#include <string>

#include <linux/tcp.h>  // the C library's tcp_info lacks the counters
#include <netinet/in.h>
#include <sys/socket.h>

namespace elastic::transport {

bool SilenceWatch::alive(const Traffic& traffic, TimePoint now) {
  if (traffic.answers != answers_) {
    answers_ = traffic.answers;
    tried_ = traffic.tried;
  }
  // A peer with a closed window is asked ever more seldom: between an answer and the next
  // question there is nothing to be heard.
  if (!traffic.outstanding || traffic.tried == tried_) silent_since_ = now;
  return now - silent_since_ < limit_;
}

Result<bool> SilenceWatch::look(int socket, TimePoint now) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  Traffic traffic;
  traffic.outstanding = info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0;
  traffic.answers = info.tcpi_segs_in - info.tcpi_data_segs_in + info.tcpi_bytes_acked;
  traffic.tried = std::uint64_t{info.tcpi_data_segs_out} + info.tcpi_retransmits + info.tcpi_probes;
  if (alive(traffic, now)) return traffic.outstanding;
  return Status(Code::kPeerLost, "nothing has answered for " + std::to_string(limit_.count()) +
                                     " ms: the network between the two workers is broken");
}

void keep_alive(int socket) {
  const auto set = [socket](int level, int option, int value) {
    // An option that this kernel lacks costs detection time, not correctness.
    [[maybe_unused]] const int done = ::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 2);
}

}  // namespace elastic::transport
