#include "benchmarks/peers/peer_names.hpp"

#include <algorithm>
#include <iterator>

namespace elastic::bench {

const std::vector<std::string>& peer_names() {
  static const std::vector<std::string> kNames{
      "mpi:direct",          "gloo:ring",      "gloo:bcube",  "gloo:old-ring",  "gloo:chunked",
      "gloo:halving",        "gloo:old-bcube", "bare:cached", "bare:streaming", "bare:kept-cached",
      "bare:kept-streaming", "bare:tcp",       "nccl:direct"};
  return kNames;
}

bool is_peer(const std::string& name) {
  return name.find(':') != std::string::npos;
}

bool takes_devices(const std::string& peer) {
  return peer.starts_with("nccl:");
}

std::vector<std::string> without_peers(const std::vector<std::string>& names) {
  std::vector<std::string> backends;
  std::remove_copy_if(names.begin(), names.end(), std::back_inserter(backends), is_peer);
  return backends;
}

Status check_peer_names(const std::vector<std::string>& names) {
  const auto& known = peer_names();
  for (const std::string& name : names) {
    if (!is_peer(name) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string list;
    for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
    return Status(Code::kInvalidArgument, "--backend " + name + ": the peers are " + list);
  }
  return {};
}

}  // namespace elastic::bench
