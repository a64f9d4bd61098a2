#include "rendezvous/hosts/missing_workers.hpp"

#include <optional>
#include <set>
#include <vector>

#include "rendezvous/launcher/supervision_text.hpp"
#include "rendezvous/protocol/slot_label.hpp"

namespace elastic::hosts {

namespace {

std::string outcome(const rendezvous::StatusReply::Departed& departed) {
  if (departed.how == "removed") return "was removed on request";
  const std::string how = departed.how == "early"     ? "ended early"
                          : departed.how == "unable"  ? "left before the job's end"
                          : departed.how == "evicted" ? "was given up by the job"
                                                      : "was lost";
  return how + launcher::because(departed.why);
}

/// "worker slot-1.0 of host b"
std::string name_of(const std::string& label, const rendezvous::StatusReply& last) {
  std::string name = "worker " + label;
  const auto slot = rendezvous::parse_slot_label(label);
  if (!slot || !last.launchers) return name;
  for (const auto& its : *last.launchers) {
    if (its.number == slot->launcher) name += " of host " + its.host;
  }
  return name;
}

}  // namespace

std::string missing_workers(int began, const rendezvous::StatusReply& last) {
  std::set<std::string> finished;
  for (const auto& member : last.view.members) finished.insert(member.label);
  std::vector<std::string> missing;
  for (const auto& departed : last.departed) {
    if (departed.how == "finished") {
      finished.insert(departed.label);
    } else {
      finished.erase(departed.label);
      missing.push_back(name_of(departed.label, last) + " " + outcome(departed));
    }
  }
  return launcher::fewer_workers(began, static_cast<int>(finished.size()), missing);
}

int known_workers(const rendezvous::StatusReply& last) {
  std::set<std::string> labels;
  for (const auto& member : last.view.members) labels.insert(member.label);
  for (const auto& departed : last.departed) labels.insert(departed.label);
  return static_cast<int>(labels.size());
}

}  // namespace elastic::hosts
