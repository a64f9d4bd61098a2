#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/layout.hpp"
#include "base/status.hpp"

namespace elastic::runtime {

/// The summary of a member's state that all members compare: for each entry the number of its
/// elements, then for each entry the hash of its values, then the commits.
std::vector<std::uint64_t> state_summary(const Layout& layout,
                                         const std::vector<std::uint64_t>& hashes,
                                         std::uint64_t commits);

/// The summary of a member that could not take over the job's state, for `why`. `final`: another
/// attempt would fail too.
std::vector<std::uint64_t> refusal_summary(const Status& why, bool final);

/// The refusals among the summaries; none if `ranks` is 0.
struct StateRefusals {
  int ranks = 0;
  bool final = false;  ///< at least one of them is final
  std::string text;    ///< rank and reason of the first, and the number of others
};
/// `all` has the summaries in rank order, `lengths` their lengths.
StateRefusals state_refusals(const std::vector<std::uint64_t>& all,
                             const std::vector<std::size_t>& lengths);

/// Describes the first difference from rank 0: rank, entry, and the sizes if these differ. Empty if
/// all are equal. `layout` is one member's. Members that refused the state are left out; if rank 0
/// is one of them, the next rank takes its place.
std::string state_difference(const std::vector<std::uint64_t>& all,
                             const std::vector<std::size_t>& lengths, const Layout& layout);

}  // namespace elastic::runtime
