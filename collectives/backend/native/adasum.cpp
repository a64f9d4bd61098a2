#include "collectives/backend/native/adasum.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/kernels/reduce.hpp"
#include "collectives/plan/allreduce.hpp"
#include "collectives/plan/builder.hpp"
#include "collectives/plan/exchange.hpp"

namespace elastic::collectives {

using plan::AdasumLevel;
using plan::Area;
using plan::Range;

namespace {

static_assert(sizeof(kernels::DotProducts) == 3 * sizeof(double), "travels as three doubles");

/// Bytes of a share of a host's vector, below which fewer ranks have shares: each costs messages.
constexpr std::size_t kLeastShare = 16 * 1024;

/// The bytes between sections, which travel with them.
void clear_gaps(const std::vector<Section>& sections, std::byte* data) {
  for (std::size_t i = 1; i < sections.size(); ++i) {
    const std::size_t end = sections[i - 1].offset + bytes_of(sections[i - 1]);
    std::fill(data + end, data + sections[i].offset, std::byte{0});
  }
}

}  // namespace

Status Adasum::run(const std::vector<Section>& sections, std::byte* data) {
  sections_ = &sections;
  data_ = data;
  clear_gaps(sections, data);
  const Range whole{Area::kData, 0, extent(sections)};
  return combine_all(plan::adasum(mesh_.rank(), mesh_.size(), whole.bytes), whole);
}

Status Adasum::run_among(const plan::Hosts& hosts, const std::vector<Section>& sections,
                         std::byte* data) {
  sections_ = &sections;
  data_ = data;
  clear_gaps(sections, data);
  const plan::HierarchicalAdasum part =
      plan::hierarchical_adasum(mesh_.rank(), hosts, extent(sections), kLeastShare);
  Status status = average_on_host(part);
  if (status.ok() && part.between) {
    status = combine_all(*part.between, part.share_of(part.place));
  }
  return status.ok() ? share_on_host(part) : status;
}

/// In step i a rank gives the i-th rank after it its share, and takes its own from the i-th before
/// it: one vector is in `received_` at a time.
Status Adasum::average_on_host(const plan::HierarchicalAdasum& part) {
  const auto ranks = static_cast<int>(part.host_ranks.size());
  const Range own = part.is_owner(part.place) ? part.share_of(part.place) : Range{};
  received_.resize(own.bytes);
  for (int i = 1; i < ranks; ++i) {
    const int next = (part.place + i) % ranks;
    const int previous = (part.place + ranks - i) % ranks;
    plan::Builder build;
    if (part.is_owner(next)) {
      const Range given = part.share_of(next);
      build.send(part.host_ranks[static_cast<std::size_t>(next)],
                 {Area::kInput, given.offset, given.bytes});
    }
    if (part.is_owner(part.place)) {
      build.receive(part.host_ranks[static_cast<std::size_t>(previous)],
                    {Area::kData, 0, own.bytes});
    }
    const Status moved =
        executor_.run(Schedule(build.take()), PlanBuffers{received_.data(), data_});
    if (!moved.ok()) return moved;
    if (part.is_owner(part.place)) add_to_average(own, i);
  }
  return {};
}

Status Adasum::share_on_host(const plan::HierarchicalAdasum& part) {
  plan::Builder build;
  for (int i = 0; i < static_cast<int>(part.host_ranks.size()); ++i) {
    if (i == part.place) continue;
    const int peer = part.host_ranks[static_cast<std::size_t>(i)];
    if (part.is_owner(i)) build.receive(peer, part.share_of(i));
    if (part.is_owner(part.place)) build.send(peer, part.share_of(part.place));
  }
  return executor_.run(Schedule(build.take()), PlanBuffers::in_place(data_));
}

/// Combines `whole` of the data of all ranks that have it.
Status Adasum::combine_all(const plan::Adasum& part, const Range& whole) {
  const PlanBuffers in_place = PlanBuffers::in_place(data_);
  if (part.proxy) {
    if (Status sent = exchange(*part.proxy, &whole, nullptr, in_place); !sent.ok()) return sent;
    return exchange(*part.proxy, nullptr, &whole, in_place);
  }
  if (part.surplus) {
    if (Status taken = take_in(part, whole); !taken.ok()) return taken;
  }
  for (const AdasumLevel& level : part.levels) {
    if (Status combined = combine(level); !combined.ok()) return combined;
  }
  for (auto level = part.levels.rbegin(); level != part.levels.rend(); ++level) {
    if (Status shared = share(*level); !shared.ok()) return shared;
  }
  return part.surplus ? exchange(*part.surplus, &whole, nullptr, in_place) : Status();
}

/// Combines the whole vector of the surplus rank with this rank's own.
Status Adasum::take_in(const plan::Adasum& part, const Range& whole) {
  received_.resize(whole.bytes);
  const Range arriving{Area::kData, 0, whole.bytes};
  Status status =
      exchange(*part.surplus, nullptr, &arriving, PlanBuffers::in_place(received_.data()));
  if (!status.ok()) return status;
  compute_products(whole, true);
  status = sum_products(part.fold_ranks);
  if (status.ok()) add_weighted(whole, true);
  return status;
}

Status Adasum::combine(const AdasumLevel& level) {
  received_.resize(level.kept.bytes);
  const Range given{Area::kInput, level.given.offset, level.given.bytes};
  const Range arriving{Area::kData, 0, level.kept.bytes};
  Status status = exchange(level.peer, &given, &arriving, PlanBuffers{received_.data(), data_});
  if (!status.ok()) return status;
  compute_products(level.kept, level.is_lower);
  status = sum_products(level.ranks);
  if (status.ok()) add_weighted(level.kept, level.is_lower);
  return status;
}

Status Adasum::share(const AdasumLevel& level) {
  return exchange(level.peer, &level.kept, &level.given, PlanBuffers::in_place(data_));
}

/// Sends a range to the peer, and receives one from it; either may be missing.
Status Adasum::exchange(int peer, const Range* sent, const Range* received,
                        const PlanBuffers& memory) {
  plan::Builder build;
  if (sent != nullptr) build.send(peer, *sent);
  if (received != nullptr) build.receive(peer, *received);
  return executor_.run(Schedule(build.take()), memory);
}

/// Calls `use(section, a, b, own, elements)` for the piece of each section in `part` of the data,
/// with the vector of the lower ranks as `a`.
template <typename Use>
void Adasum::for_each_piece(const Range& part, bool own_first, const Use& use) {
  for (std::size_t i = 0; i < sections_->size(); ++i) {
    const Section& section = (*sections_)[i];
    const std::size_t begin = std::max(section.offset, part.offset);
    const std::size_t end = std::min(section.offset + bytes_of(section), part.offset + part.bytes);
    if (begin >= end) continue;
    std::byte* const own = data_ + begin;
    const std::byte* const other = received_.data() + (begin - part.offset);
    use(i, own_first ? own : other, own_first ? other : own, own,
        (end - begin) / size_of(section.dtype));
  }
}

void Adasum::compute_products(const Range& part, bool own_first) {
  products_.assign(sections_->size(), {});
  for_each_piece(part, own_first,
                 [this](std::size_t section, const std::byte* a, const std::byte* b,
                        std::byte* /*own*/, std::size_t elements) {
                   products_[section] =
                       kernels::dot_products((*sections_)[section].dtype, a, b, elements);
                 });
}

/// Adds up the products of the ranks' pieces. All of these ranks get the same bits.
Status Adasum::sum_products(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return {};
  const auto size = static_cast<int>(ranks.size());
  const auto place =
      static_cast<int>(std::find(ranks.begin(), ranks.end(), mesh_.rank()) - ranks.begin());
  const std::size_t bytes = products_.size() * sizeof(kernels::DotProducts);
  // In a large view doubling takes links that every view has.
  const bool one_shot = mesh_.size() <= plan::kOneShotAllgatherRanks;
  const Schedule schedule(
      plan::among(ranks, one_shot ? plan::one_shot_allreduce(place, size, bytes)
                                  : plan::recursive_doubling_allreduce(place, size, bytes)));
  Reducer sum;
  sum.reduce = kernels::reduce(DType::kF64, ReduceOp::kSum);
  sum.element = sizeof(double);
  return executor_.run(schedule, reinterpret_cast<std::byte*>(products_.data()), sum);
}

void Adasum::add_weighted(const Range& part, bool own_first) {
  for_each_piece(part, own_first,
                 [this](std::size_t section, const std::byte* a, const std::byte* b, std::byte* own,
                        std::size_t elements) {
                   const auto& [ab, aa, bb] = products_[section];
                   kernels::weighted_sum((*sections_)[section].dtype, own, a,
                                         kernels::adasum_weight(ab, aa), b,
                                         kernels::adasum_weight(ab, bb), elements);
                 });
}

/// `part` of the data is the average of so many vectors, and becomes that of one more. No sum of
/// vectors is formed, which would overflow before an average does.
void Adasum::add_to_average(const Range& part, int vectors) {
  const double both = vectors + 1.0;
  for_each_piece(part, true,
                 [&](std::size_t section, const std::byte* average, const std::byte* next,
                     std::byte* own, std::size_t elements) {
                   kernels::weighted_sum((*sections_)[section].dtype, own, average, vectors / both,
                                         next, 1 / both, elements);
                 });
}

}  // namespace elastic::collectives
