#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/tensor_request.hpp"

namespace elastic::coordinator {

/// The requests that run as one collective, in order.
using BucketContent = std::vector<std::shared_ptr<const TensorRequest>>;

/// Fuses requests into buckets. What comes out depends on nothing but the order of the calls.
///
/// One bucket per (kind, op) is open at a time; dtypes may differ within a bucket. Owned by a
/// Negotiator.
class BucketPlanner {
 public:
  /// `bucket_bytes`: a bucket holds no more, unless it consists of one larger request.
  explicit BucketPlanner(std::size_t bucket_bytes) : bucket_bytes_(bucket_bytes) {}

  /// Appends to the open bucket. When it does not fit there any more, that bucket is closed and
  /// returned, and the request opens the next one.
  std::optional<BucketContent> add(std::shared_ptr<const TensorRequest> request);
  /// Takes a request out of its open bucket again. False when it is in none.
  bool remove(const std::shared_ptr<const TensorRequest>& request);
  /// Closes all open buckets, that opened first first.
  std::vector<BucketContent> close_all();

  bool empty() const { return open_.empty(); }
  void clear() { open_.clear(); }

  /// Bound on what it takes to describe a bucket to another rank.
  static constexpr std::size_t kMaxDefinitionBytes = 256 * 1024;

 private:
  struct Open {
    BucketContent content;
    std::uint64_t bytes = 0;
    std::size_t definition_bytes = 0;
  };
  bool fits(const Open& open, const TensorRequest& request) const;

  std::uint64_t bucket_bytes_;
  std::vector<Open> open_;  // none is empty; in the order in which they were opened
};

}  // namespace elastic::coordinator
