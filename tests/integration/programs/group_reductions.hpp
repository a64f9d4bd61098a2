#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <elastic/group.hpp>
#include <elastic/minloc.hpp>
#include <elastic/sparse_allreduce.hpp>

#include "integration/programs/check_program.hpp"

namespace elastic::testing {

/// Makes minloc, maxloc and sparse_allreduce in a group. `ranks`: those of its members in the job;
/// `rank`: that of this worker in the job, with which each member's values begin.
inline void check_gathered_reductions(Group& group, const std::vector<std::int64_t>& ranks,
                                      int rank) {
  const std::string in = " in " + group.name();
  std::vector<float> values{static_cast<float>(rank), 1};
  std::vector<std::int64_t> indices{10 + rank, rank};
  require(minloc(group, values, indices).size() == ranks.size(), "workers of minloc" + in);
  require(values == std::vector<float>{static_cast<float>(ranks.front()), 1}, "minloc" + in);
  require(indices == std::vector<std::int64_t>{10 + ranks.front(), ranks.front()}, "indices" + in);
  require(maxloc(group, rank, rank).index == ranks.back(), "maxloc" + in);

  // Row 0 of all members, and one of this member alone.
  const std::vector<std::int64_t> rows{rank + 1, 0};
  const std::vector<double> given{1.0 * rank, 2.0 * rank, 1, 10};
  const auto last = static_cast<std::size_t>(ranks.back());
  const SparseRows sums = sparse_allreduce(group, {rows, view(std::span(given)), 2, last + 2});
  std::vector<std::int64_t> right_rows{0};
  const auto members = static_cast<double>(ranks.size());
  std::vector<double> right{members, 10 * members};
  for (const std::int64_t each : ranks) {
    right_rows.push_back(each + 1);
    right.insert(right.end(), {1.0 * static_cast<double>(each), 2.0 * static_cast<double>(each)});
  }
  require(sums.indices == right_rows, "sparse indices" + in);
  require(sums.values.size() == right.size() * sizeof(double) &&
              std::memcmp(sums.values.data(), right.data(), sums.values.size()) == 0,
          "sparse sums" + in);
  require(sums.contributors.size() == ranks.size(), "workers of sparse_allreduce" + in);
  if (group.size() < 2) return;
  const bool is_last = group.rank() == group.size() - 1;
  const SparseRowsView unlike{rows, view(std::span(given)), 2, last + (is_last ? 3 : 2)};
  const std::vector<std::string> text{
      "in the group of ranks " + std::to_string(ranks.front()),
      ", numbered from 0: rank 0 called sparse_allreduce on a tensor",
      "rank " + std::to_string(group.size() - 1)};
  must_fail("unlike rows" + in, ErrorCode::kMismatch, text,
            [&] { sparse_allreduce(group, unlike); });
  must_fail("unlike named rows" + in, ErrorCode::kMismatch, text,
            [&] { (void)sparse_allreduce_async(group, "unlike rows" + in, unlike).wait(); });
  must_fail("unlike locations" + in, ErrorCode::kMismatch,
            {"in the group of ranks", ", numbered from 0: rank 0 called minloc of 2 f32"}, [&] {
              const std::size_t count = is_last ? 1 : 2;
              minloc(group, std::span(values).first(count), std::span(indices).first(count));
            });
}

}  // namespace elastic::testing
