#pragma once

#include <cstdint>

#include <elastic/sampler.hpp>

namespace dynamic_sgd {

/// The epoch that the sampler's next draw belongs to, from 0.
inline std::uint64_t next_epoch(const elastic::Sampler& sampler) {
  return sampler.epoch() + (sampler.done_in_epoch() == sampler.size() ? 1 : 0);
}

}  // namespace dynamic_sgd
