#include "rendezvous/monitoring/states.hpp"

#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rendezvous/protocol/slot_label.hpp"

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

std::string quarantine_lines(const StatusReply& status) {
  std::set<std::string> lines;  // two launchers of one host say the same
  for (const auto& its : status.launchers.value_or(std::vector<StatusReply::Launcher>())) {
    if (!its.quarantine) continue;
    lines.insert(fmt::format("host {} is in quarantine for {} s more: {}\n", its.host,
                             (its.quarantine->left_ms + 999) / 1000, its.quarantine->why));
  }
  return fmt::format("{}", fmt::join(lines, ""));
}

std::string host_of(const StatusReply& status, const rendezvous::Member& member) {
  const auto slot = rendezvous::parse_slot_label(member.label);
  if (slot && status.launchers) {
    for (const auto& its : *status.launchers) {
      if (its.number == slot->launcher) return its.host;
    }
  }
  return member.endpoints.host.substr(0, member.endpoints.host.find('/'));
}

}  // namespace elastic::monitoring
