#include "base/hash.hpp"

#ifdef ELASTIC_XXHASH_DISPATCHES
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace elastic {

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

PiecewiseHash::PiecewiseHash() : state_(XXH3_createState()) {
  reset();
}

void PiecewiseHash::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

void PiecewiseHash::reset() {
  XXH3_64bits_reset(state_.get());
}

void PiecewiseHash::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
}

std::uint64_t PiecewiseHash::value() const {
  return XXH3_64bits_digest(state_.get());
}

}  // namespace elastic
