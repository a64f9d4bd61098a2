#include "collectives/model/symmetry.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>
#include <set>

namespace elastic::model {
namespace {

using plan::Hosts;
using plan::Step;

/// Bytes. Parts of a tensor differ by an element and by a cache line, at which they begin.
constexpr std::size_t kAlmostEqual = 128;

bool is_regular(const Hosts& hosts) {
  return hosts.count() > 1 && hosts.count() * hosts.most_ranks() == hosts.size();
}

bool equal(std::size_t a, std::size_t b) {
  return std::max(a, b) - std::min(a, b) <= kAlmostEqual;
}

/// Kinds that cost the same are one: the order of the operands depends on the rank.
Step::Kind kind_of(const Step& step) {
  if (step.kind == Step::Kind::kReduceReceived) return Step::Kind::kReceiveReduce;
  if (step.kind == Step::Kind::kReduceFlipped) return Step::Kind::kReduce;
  return step.kind;
}

/// The steps, with those as one that a message consists of which goes on at the other end of its
/// rank's part of the tensor: each host has that in another place.
std::vector<Step> uncut(const plan::Plan& plan) {
  const auto offset = [](const Step& step) {
    return step.kind == Step::Kind::kSend ? step.from.offset : step.into.offset;
  };
  std::vector<Step> whole;
  std::size_t before = 0;
  for (const Step& step : plan.steps) {
    const bool goes_on = !whole.empty() && step.peer != Step::kNone &&
                         whole.back().peer == step.peer && kind_of(whole.back()) == kind_of(step) &&
                         offset(step) < before;
    before = offset(step);
    if (!goes_on) {
      whole.push_back(step);
      continue;
    }
    whole.back().from.bytes += step.from.bytes;
    whole.back().into.bytes += step.into.bytes;
  }
  return whole;
}

}  // namespace

Symmetry::Symmetry(const Hosts& hosts, Kind kind) : hosts_(hosts), kind_(kind) {
  place_.resize(static_cast<std::size_t>(hosts.size()));
  for (int host = 0; host < hosts.count(); ++host) {
    int place = 0;
    for (const int rank : hosts.ranks(host)) place_[static_cast<std::size_t>(rank)] = place++;
  }
  if (kind == Kind::kNone) {
    ranks_.resize(place_.size());
    std::iota(ranks_.begin(), ranks_.end(), 0);
  } else {
    ranks_ = hosts.ranks(0);
  }
}

Symmetry Symmetry::find(const Hosts& hosts, const std::vector<PlanOf>& plans) {
  if (!is_regular(hosts)) return Symmetry(hosts);
  if (Symmetry ring(hosts, Kind::kRing); ring.holds(plans)) return ring;
  if (std::has_single_bit(static_cast<unsigned>(hosts.count()))) {
    if (Symmetry flip(hosts, Kind::kFlip); flip.holds(plans)) return flip;
  }
  return Symmetry(hosts);
}

int Symmetry::distance(int from_rank, int to_rank) const {
  const int from = hosts_.of(from_rank);
  const int to = hosts_.of(to_rank);
  switch (kind_) {
    case Kind::kRing:
      return (to - from + hosts_.count()) % hosts_.count();
    case Kind::kFlip:
      return to ^ from;
    case Kind::kNone:
      break;
  }
  return 0;
}

bool Symmetry::holds(const std::vector<PlanOf>& plans) const {
  const int count = hosts_.count();
  const std::set<int> others{1, count / 2, count - 2, count - 1};
  for (const PlanOf& plan : plans) {
    for (const int rank : ranks_) {
      const plan::Plan first = plan(rank);
      for (const int host : others) {
        if (host == 0) continue;
        const int other = hosts_.ranks(host)[static_cast<std::size_t>(place(rank))];
        if (!alike(first, rank, plan(other), other)) return false;
      }
    }
  }
  return true;
}

bool Symmetry::alike(const plan::Plan& first, int first_rank, const plan::Plan& other,
                     int other_rank) const {
  const auto same = [&](const Step& a, const Step& b) {
    if (kind_of(a) != kind_of(b)) return false;
    if (!equal(a.from.bytes, b.from.bytes) || !equal(a.into.bytes, b.into.bytes)) return false;
    if (a.peer == Step::kNone || b.peer == Step::kNone) return a.peer == b.peer;
    return place(a.peer) == place(b.peer) &&
           distance(first_rank, a.peer) == distance(other_rank, b.peer);
  };
  const auto wait_alike = [](const Step& a, const Step& b) {
    return std::ranges::equal(a.after, b.after);
  };
  if (std::ranges::equal(first.steps, other.steps, same)) {
    return std::ranges::equal(first.steps, other.steps, wait_alike);
  }
  return std::ranges::equal(uncut(first), uncut(other), same);
}

}  // namespace elastic::model
