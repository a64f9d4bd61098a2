#include "runtime/calls_under_way.hpp"

#include <utility>

namespace elastic::runtime {
namespace {

/// Bound on a tensor's name in a heartbeat, in bytes: heartbeats have to stay small.
constexpr std::size_t kLongestName = 100;

}  // namespace

void CallsUnderWay::set_first_name(std::function<std::string()> first_name) {
  const MutexLock lock(mutex_);
  first_name_ = std::move(first_name);
}

std::optional<std::vector<rendezvous::CallUnderWay>> CallsUnderWay::present_calls(
    const coordinator::Lane& unnamed, const coordinator::Lane& named) const {
  const std::optional<std::string> unnamed_call = unnamed.call_under_way();
  const std::optional<std::string> named_call = named.call_under_way();
  if (!unnamed_call || !named_call) return std::nullopt;
  std::string name;
  {
    const MutexLock lock(mutex_);
    if (first_name_) name = first_name_();
  }
  if (name.size() > kLongestName) name = name.substr(0, kLongestName) + "...";
  return {{{*unnamed_call, {}}, {*named_call, std::move(name)}}};
}

}  // namespace elastic::runtime
