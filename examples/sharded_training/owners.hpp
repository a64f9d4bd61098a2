#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <elastic/elastic.hpp>

/// The workers that own the parts of a sharded tensor, in the order of the parts: an entry of the
/// State, whose vectors have a fixed size.
class Owners {
 public:
  void set(const elastic::Contributors& contributors) {
    const auto workers = contributors.workers();
    workers_.assign(workers.begin(), workers.end());
  }
  bool are(const elastic::Contributors& contributors) const {
    return std::ranges::equal(workers_, contributors.workers());
  }
  bool empty() const { return workers_.empty(); }
  bool include(elastic::WorkerId worker) const {
    return std::ranges::find(workers_, worker) != workers_.end();
  }
  /// The owner before `worker`, which is one; of the first the last.
  elastic::WorkerId before(elastic::WorkerId worker) const {
    const auto self = std::ranges::find(workers_, worker);
    return self == workers_.begin() ? workers_.back() : *(self - 1);
  }

  std::vector<std::byte> save() const {
    const auto bytes = std::as_bytes(std::span(workers_));
    return {bytes.begin(), bytes.end()};
  }
  void load(std::span<const std::byte> bytes) {
    workers_.resize(bytes.size() / sizeof(elastic::WorkerId));
    if (!bytes.empty()) std::memcpy(workers_.data(), bytes.data(), bytes.size());
  }

 private:
  std::vector<elastic::WorkerId> workers_;
};
