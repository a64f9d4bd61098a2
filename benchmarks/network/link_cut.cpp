#include "benchmarks/network/link_cut.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include "benchmarks/network/host_network.hpp"

namespace elastic::network {

namespace {

constexpr std::array<std::uint8_t, 6> kUnusedAddress{2, 0, 0, 0, 0xff, 0xff};

struct NeighbourRequest {
  nlmsghdr header{};
  ndmsg neighbour{};
};

/// Appends an attribute at `at`. \returns the offset of the next attribute.
std::size_t put_attribute(std::span<std::byte> message, std::size_t at, unsigned short type,
                          const void* value, std::size_t bytes) {
  const rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(bytes)), type};
  std::memcpy(&message[at], &attribute, sizeof attribute);
  std::memcpy(&message[at + RTA_LENGTH(0)], value, bytes);
  return at + RTA_SPACE(bytes);
}

}  // namespace

Status LinkCut::open(const std::string& space, const std::string& to_address, LinkCut& cut) {
  in_addr address{};
  if (::inet_pton(AF_INET, to_address.c_str(), &address) != 1) {
    return Status(Code::kInvalidArgument, "'" + to_address + "' is not an IPv4 address");
  }
  return run_on_host(space, [&]() -> Status {
    cut.socket_ = UniqueFd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    const unsigned device = ::if_nametoindex("eth0");
    if (!cut.socket_ || device == 0) {
      return Status(Code::kUnavailable,
                    "cannot prepare to cut a link: " + std::string(std::strerror(errno)));
    }
    NeighbourRequest request;
    request.header.nlmsg_type = RTM_NEWNEIGH;
    request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK;
    request.neighbour.ndm_family = AF_INET;
    request.neighbour.ndm_ifindex = static_cast<int>(device);
    request.neighbour.ndm_state = NUD_PERMANENT;
    std::size_t at = sizeof request;
    at = put_attribute(cut.message_, at, NDA_DST, &address, sizeof address);
    at = put_attribute(cut.message_, at, NDA_LLADDR, kUnusedAddress.data(), kUnusedAddress.size());
    request.header.nlmsg_len = static_cast<std::uint32_t>(at);
    std::memcpy(cut.message_.data(), &request, sizeof request);
    cut.bytes_ = at;
    return {};
  });
}

void LinkCut::strike() noexcept {
  error_ = ::send(socket_.get(), message_.data(), bytes_, 0) < 0 ? errno : 0;
}

Status LinkCut::confirm() {
  struct {
    nlmsghdr header{};
    nlmsgerr outcome{};
    std::array<std::byte, sizeof message_> request{};  // the kernel returns it with an error
  } answer;
  // The kernel answers before `send` returns.
  const ssize_t got = error_ == 0 ? ::recv(socket_.get(), &answer, sizeof answer, MSG_DONTWAIT) : 0;
  if (got < 0) error_ = errno;
  const bool whole = got >= static_cast<ssize_t>(offsetof(decltype(answer), request));
  if (error_ == 0 && whole && answer.header.nlmsg_type == NLMSG_ERROR) {
    error_ = -answer.outcome.error;
    if (error_ == 0) return {};
  }
  return Status(Code::kUnavailable, std::string("the kernel did not cut the link: ") +
                                        (error_ != 0 ? std::strerror(error_) : "no answer"));
}

}  // namespace elastic::network
