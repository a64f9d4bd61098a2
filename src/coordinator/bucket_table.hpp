#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/bucket_builder.hpp"
#include "coordinator/tensor_request.hpp"

namespace elastic::coordinator {

struct Bucket;

/// The state of one name on this rank.
struct NameState {
  enum class Progress : std::uint8_t {
    kIdle,     ///< not submitted here
    kWaiting,  ///< submitted, not ordered
    kOrdered,  ///< in an order that is not complete here
  };

  const std::string* name = nullptr;         ///< the table's key
  std::shared_ptr<const TensorRequest> own;  ///< as submitted here; null while idle
  std::uint64_t sequence = 0;  ///< number of the submission on this rank; gives their order
  Progress progress = Progress::kIdle;
  bool submitted_by_name = false;  ///< follower: sent this submission to the leader by name

  Bucket* bucket = nullptr;  ///< the bucket that it is planned in; null: none, or an open one
  std::size_t index = 0;     ///< in the bucket

  /// Leader: by rank, the requests that followers submitted by name since the last order. Empty for
  /// none.
  std::vector<std::shared_ptr<const TensorRequest>> submissions_by_name;
  std::size_t submissions_by_name_count = 0;

  bool waiting() const { return progress == Progress::kWaiting; }
  /// Whether this rank submitted the same request as the bucket was planned with.
  bool as_planned() const;
  void forget_submissions_by_name();
};

/// Requests that are planned to run together, and the progress of their current submission.
struct Bucket {
  std::shared_ptr<const BucketContent> content;
  std::vector<NameState*> tensors;  ///< in the order of `content`
  std::list<Bucket>::iterator self;

  std::uint64_t id = 0;          ///< its id in the notes of this view; 0 before its definition
  std::size_t submitted = 0;     ///< tensors that wait here (follower: without those submitted by
                                 ///< name)
  std::uint64_t last_order = 0;  ///< number of the latest order that it was in

  // Follower.
  bool said_ready = false;  ///< BucketReady was sent
  bool by_name = false;     ///< this time the tensors are submitted to the leader one by one

  // Leader.
  std::size_t missing = 0;  ///< number of (tensor, rank) pairs that it still waits for
  std::vector<bool> ready;  ///< ranks that said it is ready
  std::vector<std::size_t> submitted_by_name;  ///< by rank: tensors submitted by name, as agreed

  std::size_t size() const { return tensors.size(); }
  bool partly_submitted() const { return submitted > 0 && submitted < size(); }
  /// Resets the progress: no rank has submitted any tensor, in a view with `ranks` ranks.
  void reset(std::size_t ranks);
};

/// All names, and the agreed buckets that they are in. Owned by a Negotiator.
class BucketTable {
 public:
  BucketTable() = default;
  BucketTable(const BucketTable&) = delete;
  BucketTable& operator=(const BucketTable&) = delete;

  NameState& at(const std::string& name);
  NameState* find(const std::string& name);
  /// Adds a bucket. Its names must not be in another one.
  Bucket& insert(BucketContent content);
  /// Removes a bucket. Its tensors are in no bucket afterwards.
  void erase(Bucket& bucket);
  /// Forgets the name if it has no state left, which invalidates references to it.
  void release(NameState& tensor);

  std::list<Bucket>& buckets() { return buckets_; }
  std::unordered_map<std::string, NameState>& names() { return names_; }
  const std::unordered_map<std::string, NameState>& names() const { return names_; }

 private:
  std::unordered_map<std::string, NameState> names_;
  std::list<Bucket> buckets_;
};

}  // namespace elastic::coordinator
