#include "runtime/calls_under_way.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/hash.hpp"
#include "coordinator/group_operation.hpp"

namespace elastic::runtime {
namespace {

using rendezvous::CallUnderWay;

/// Bounds on a call in a heartbeat, in bytes and ranges of ranks: heartbeats have to stay small.
constexpr std::size_t kLongestText = 100;
constexpr std::size_t kMostRanges = 16;

std::string cut_off(std::string text) {
  if (text.size() <= kLongestText) return text;
  std::size_t end = kLongestText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text + "...";
}

/// Long names differ in what is left of them, too.
std::string short_name(const std::string& name) {
  if (name.size() <= kLongestText) return name;
  return cut_off(name) + std::to_string(hash_of(std::as_bytes(std::span(name))));
}

/// The first and the last rank of each range; nothing if there are too many ranges.
std::optional<std::vector<std::uint64_t>> ranges_of(const std::vector<int>& ranks) {
  std::vector<std::uint64_t> ranges;
  for (const int each : ranks) {
    const auto rank = static_cast<std::uint64_t>(each);
    if (!ranges.empty() && ranges.back() + 1 == rank) {
      ranges.back() = rank;
    } else if (ranges.size() < 2 * kMostRanges) {
      ranges.insert(ranges.end(), {rank, rank});
    } else {
      return std::nullopt;
    }
  }
  return ranges;
}

CallUnderWay described(const CallsUnderWay::NamedCall& call, std::string kind,
                       const coordinator::Members* members) {
  CallUnderWay made{std::move(kind), short_name(call.name)};
  made.text = cut_off(coordinator::describe_call(call.kind, call.name));
  if (call.group && members != nullptr) {
    made.ranks = ranges_of(coordinator::ranks_among(*members, *call.group));
  }
  return made;
}

}  // namespace

void CallsUnderWay::set_first_call(FirstCall first_call) {
  const MutexLock lock(mutex_);
  first_call_ = std::move(first_call);
}

std::optional<std::vector<CallUnderWay>> CallsUnderWay::present_calls(
    const coordinator::Lane& unnamed, const coordinator::Lane& named,
    const coordinator::Members* members) const {
  const std::optional<std::string> unnamed_call = unnamed.call_under_way();
  std::optional<std::string> named_call = named.call_under_way();
  if (!unnamed_call || !named_call) return std::nullopt;
  std::optional<NamedCall> first;
  {
    const MutexLock lock(mutex_);
    if (first_call_) first = first_call_();
  }
  std::vector<CallUnderWay> calls{{*unnamed_call, {}}};
  calls.push_back(first ? described(*first, std::move(*named_call), members)
                        : CallUnderWay{std::move(*named_call), {}});
  return calls;
}

}  // namespace elastic::runtime
