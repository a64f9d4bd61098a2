#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "collectives/backend/backend.hpp"
#include "coordinator/lane_view.hpp"

namespace elastic::coordinator {

/// An attempt at a collective of small data without an Operation, which costs more than the data
/// (Lane::run_small). If it does not complete, an Operation for the same call goes on.
struct SmallAttempt {
  collectives::SmallCall call;
  /// The view that the root's rank, or the order of blocks, belongs to: no other one will do. 0:
  /// any view.
  std::uint64_t generation = 0;
  std::string needs = {};  ///< as Operation::needs
  /// Copies the result, computed by these members, to the caller, as Operation::unpack.
  std::function<void(const Members&, const collectives::Payload&)> take = {};
};

}  // namespace elastic::coordinator
