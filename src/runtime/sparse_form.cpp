#include "runtime/sparse_form.hpp"

#include <algorithm>

namespace elastic::runtime {

namespace {

/// Up to here the sum of ones, one of each member, is not 0 in any element type.
constexpr std::size_t kMostSmallMarks = 127;

}  // namespace

bool goes_dense(std::span<const SparseOffers> by_rank) {
  const SparseOffers& first = by_rank.front();
  const auto is_small = [](const SparseOffer& offer) { return offer.element_bytes() == 1; };
  if (by_rank.size() > kMostSmallMarks && std::ranges::any_of(first, is_small)) return false;
  const auto form = static_cast<SparseForm>(first.front().form);
  if (form != SparseForm::kChosen) return form == SparseForm::kDense;
  if (by_rank.size() < 2) return false;
  double dense = 0;
  for (const SparseOffer& offer : first) dense += offer.dense_bytes();
  double gathered = 0;
  for (const SparseOffers& offers : by_rank) {
    for (const SparseOffer& offer : offers) gathered += static_cast<double>(offer.given_bytes());
  }
  return gathered > kGatheredForDense * dense;
}

}  // namespace elastic::runtime
