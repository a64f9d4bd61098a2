#include "collectives/transport/link_failure.hpp"

#include <algorithm>

namespace elastic::transport {

namespace {

bool on_loopback_only(const Endpoints& endpoints) {
  return !endpoints.tcp.empty() &&
         std::ranges::all_of(endpoints.tcp, [](const std::string& address) {
           return address.starts_with("127.") || address.starts_with("[::1]");
         });
}

/// Where two hosts have no link because one of them cannot be reached by any: what to do about it.
std::string bind_advice(const Endpoints& peer, const Endpoints& own) {
  if (peer.host == own.host) return {};
  const bool of_peer = on_loopback_only(peer);
  if (!of_peer && !on_loopback_only(own)) return {};
  const Endpoints& hidden = of_peer ? peer : own;
  return std::string("; ") + (of_peer ? "it" : "this worker") + " listens on " +
         hidden.tcp.front() +
         " only, which other hosts do not reach: set ELASTIC_BIND (Options::bind) for all workers "
         "to an address that they do reach, such as 0.0.0.0";
}

}  // namespace

std::string describe_missing_link(const Peer& peer, const Endpoints& own, const Status* last_try) {
  std::string why = "no link with worker " + peer.incarnation.substr(0, 8) + " in time";
  if (last_try != nullptr) why += ": " + last_try->message();
  return why + bind_advice(peer.endpoints, own);
}

}  // namespace elastic::transport
