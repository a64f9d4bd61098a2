#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/layout.hpp"
#include "base/status.hpp"

namespace elastic::runtime {

/// What a member tells the others of its state, to be compared: for each entry the number of its
/// elements, the same for the hashes of their values, and the commits.
std::vector<std::uint64_t> state_summary(const Layout& layout,
                                         const std::vector<std::uint64_t>& hashes,
                                         std::uint64_t commits);

/// What a member tells instead where it could not take the job's state over, for `why`. `final`:
/// another attempt would end alike.
std::vector<std::uint64_t> refusal_summary(const Status& why, bool final);

/// The members that told of such a refusal; none if `ranks` is 0.
struct StateRefusals {
  int ranks = 0;
  bool final = false;  ///< of at least one
  std::string text;    ///< the first one's rank and reason, and how many others there are
};
/// `all`: the summaries in rank order, `lengths` their lengths.
StateRefusals state_refusals(const std::vector<std::uint64_t>& all,
                             const std::vector<std::size_t>& lengths);

/// How the first member that differs from rank 0 does so: rank, entry, and the sizes where these
/// differ. `layout` is one member's. Empty where all are alike. Members that refused the state are
/// left out; where rank 0 is one of them, the next rank takes its place.
std::string state_difference(const std::vector<std::uint64_t>& all,
                             const std::vector<std::size_t>& lengths, const Layout& layout);

}  // namespace elastic::runtime
