#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/sparse_offer.hpp"

namespace elastic::runtime {

/// How many bytes of rows and indices, from all members, take as long to gather and add as one byte
/// of a dense tensor takes to allreduce: 0.9 to 1.8 over shared memory and TCP, with 2 and 4 ranks.
/// docs/sparse-rows.md has the measurement.
inline constexpr double kGatheredForDense = 1.25;

/// Whether the rows that all members offer travel as dense tensors. Pure: all members have the same
/// offers, and decide alike. The tensors of a call travel in one way, as they are one operation.
/// `by_rank` are the offers of one call (check_offers).
///
/// Elements of 8 bits are gathered where more members than 127 could make the marks of dense rows
/// wrap around to 0, whatever the program asked for.
bool goes_dense(std::span<const SparseOffers> by_rank);

}  // namespace elastic::runtime
