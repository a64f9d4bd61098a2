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

/// Fuses requests into buckets. The buckets depend on the order of the calls alone. One bucket of
/// allreduces per op is open at a time, and another one of those on devices: in one bucket all
/// would go through host memory. Dtypes may differ within a bucket. Any other request is a bucket
/// by itself. Owned by a Negotiator.
class BucketBuilder {
 public:
  /// `bucket_bytes` limits the size of a bucket; a single larger request has a bucket of its own.
  /// Buckets on devices may be kDeviceFactor times as large.
  explicit BucketBuilder(std::size_t bucket_bytes) : bucket_bytes_(bucket_bytes) {}
  /// Holds for what is added from now on.
  void set_bucket_bytes(std::size_t bucket_bytes) { bucket_bytes_ = bucket_bytes; }

  /// Appends `request` to the open bucket. If it does not fit, that bucket is closed and returned,
  /// and the request opens the next one. A request that is a bucket by itself is returned.
  std::optional<BucketContent> add(std::shared_ptr<const TensorRequest> request);
  /// Removes a request from its open bucket. False if no open bucket has it.
  bool remove(const std::shared_ptr<const TensorRequest>& request);
  /// Closes all open buckets, in the order in which they were opened.
  std::vector<BucketContent> close_all();

  bool empty() const { return open_.empty(); }
  void clear() { open_.clear(); }

  /// Bound on the encoded size of a bucket's definition in a note.
  static constexpr std::size_t kMaxDefinitionBytes = 256 * 1024;
  /// NVLink moves some hundred gigabytes a second. A bucket of 16 MiB is summed there in the time
  /// that the ranks take to agree on it and on its result.
  static constexpr std::uint64_t kDeviceFactor = 4;

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
