#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "elastic/worker_id.hpp"

namespace elastic {

/// The workers that took part in a collective: exactly those with a contribution to its result. The
/// same on every rank that returned from the call. A cheap value; immutable.
class Contributors {
 public:
  Contributors() = default;
  Contributors(std::shared_ptr<const std::vector<WorkerId>> workers, std::uint64_t generation)
      : workers_(std::move(workers)), generation_(generation) {}

  /// Number of workers.
  std::size_t size() const noexcept { return workers_ ? workers_->size() : 0; }
  /// In the order of their ranks in the view of `generation()`.
  std::span<const WorkerId> workers() const noexcept {
    return workers_ ? std::span<const WorkerId>(*workers_) : std::span<const WorkerId>();
  }
  /// The generation of the view in which the call was completed.
  std::uint64_t generation() const noexcept { return generation_; }

 private:
  std::shared_ptr<const std::vector<WorkerId>> workers_;
  std::uint64_t generation_ = 0;
};

}  // namespace elastic
