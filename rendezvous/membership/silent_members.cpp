#include "rendezvous/membership/silent_members.hpp"

#include <utility>

namespace elastic::rendezvous {

void SilentMembers::add(const View& view, const Member& member, const std::string& why) {
  std::set<std::string> neighbours;
  for (const Member& other : view.members) {
    if (other.endpoints.host != member.endpoints.host) continue;
    if (other.incarnation != member.incarnation) neighbours.insert(other.incarnation);
  }
  if (neighbours.empty()) return;
  silent_.push_back({{member.label, member.pid, why}, std::move(neighbours)});
}

void SilentMembers::forget(const std::string& label) {
  if (label.empty()) return;
  std::erase_if(silent_, [&](const Entry& its) { return its.silent.label == label; });
}

std::vector<Decision::Silent> SilentMembers::take(const std::string& heard) {
  std::vector<Decision::Silent> taken;
  std::erase_if(silent_, [&](Entry& its) {
    if (!its.neighbours.contains(heard)) return false;
    taken.push_back(std::move(its.silent));
    return true;
  });
  return taken;
}

}  // namespace elastic::rendezvous
