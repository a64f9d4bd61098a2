#include "rendezvous/monitoring/states.hpp"

namespace elastic::monitoring {

using rendezvous::StatusReply;

StatusReply::Progress progress_of(const StatusReply& status, std::size_t rank) {
  if (rank < status.progress.size()) return status.progress[rank];
  return {0, 0, status.view.members[rank].synced, true, {}};
}

const char* state_of(const StatusReply& status, const StatusReply::Progress& member) {
  if (status.phase == "done" || status.phase == "failed") return "ended";
  if (!member.connected) return "disconnected";
  return member.synced ? "synced" : "member";
}

const char* state_of(const StatusReply::Waiting& joiner) {
  if (!joiner.ready) return "preparing";
  return joiner.waits_for.empty() ? "joining" : "waiting";
}

std::string short_host(const std::string& host) {
  return host.substr(0, host.find('/'));
}

}  // namespace elastic::monitoring
