#pragma once

#include <vector>

namespace elastic::plan {

/// Which ranks of a view share a host. The same on every rank.
class Hosts {
 public:
  /// `host_of_rank` has equal numbers for ranks of one host; which ones does not matter.
  explicit Hosts(const std::vector<int>& host_of_rank);
  /// All ranks on one host.
  static Hosts one(int size) { return Hosts(std::vector<int>(static_cast<std::size_t>(size))); }
  /// Each rank on a host of its own.
  static Hosts one_rank_each(int size);

  int size() const { return static_cast<int>(host_of_.size()); }               ///< ranks
  int count() const { return static_cast<int>(ranks_.size()); }                ///< hosts
  int of(int rank) const { return host_of_[static_cast<std::size_t>(rank)]; }  ///< below count()
  /// Ranks on a host, ascending.
  const std::vector<int>& ranks(int host) const { return ranks_[static_cast<std::size_t>(host)]; }
  int most_ranks() const;  ///< on one host

 private:
  std::vector<int> host_of_;
  std::vector<std::vector<int>> ranks_;
};

}  // namespace elastic::plan
