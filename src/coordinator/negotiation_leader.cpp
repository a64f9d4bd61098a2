#include <algorithm>
#include <limits>
#include <utility>

#include "coordinator/negotiation.hpp"

// The leader's part of the Negotiator, which runs on rank 0.
namespace elastic::coordinator {
namespace {

bool by_sequence(const NameState* a, const NameState* b) {
  return a->sequence < b->sequence;
}

}  // namespace

void Negotiator::tell_followers(const NoteItem& item) {
  if (size_ > 1) notes_.add(item);
}

void Negotiator::lead(NameState& tensor) {
  if (joined_.any()) submit_for_joined(tensor);
  if (tensor.bucket == nullptr) {
    plan(tensor);
  } else if (!tensor.as_planned()) {
    dissolve({tensor.bucket});
  } else {
    Bucket& bucket = *tensor.bucket;
    note_submitted(bucket);
    --bucket.missing;
    run_if_ready(bucket);
  }
  look_for_mismatch(tensor);
}

void Negotiator::plan(NameState& tensor) {
  if (auto closed = builder_.add(tensor.own)) close(std::move(*closed));
  oldest_open_ = std::min(oldest_open_, tensor.sequence);
}

void Negotiator::close(BucketContent content) {
  Bucket& bucket = table_.insert(std::move(content));
  bucket.reset(ranks());
  bucket.last_order = orders_made_;
  for (NameState* tensor : bucket.tensors) {
    ++bucket.submitted;
    --bucket.missing;
    for (std::size_t rank = 0; rank < tensor->submissions_by_name.size(); ++rank) {
      const auto& submitted = tensor->submissions_by_name[rank];
      if (!submitted || *submitted != *tensor->own) continue;
      ++bucket.submitted_by_name[rank];
      --bucket.missing;
    }
  }
  run_if_ready(bucket);
}

void Negotiator::close_open_buckets() {
  oldest_open_ = std::numeric_limits<std::uint64_t>::max();
  for (BucketContent& content : builder_.close_all()) close(std::move(content));
}

bool Negotiator::any_rank_waits_for_open_bucket() const {
  if (size_ < 2 || builder_.empty()) return false;
  return std::any_of(table_.names().begin(), table_.names().end(), [&](const auto& entry) {
    const NameState& tensor = entry.second;
    return tensor.waiting() && tensor.bucket == nullptr &&
           tensor.submissions_by_name_count + 1 == ranks();
  });
}

// Applies the last flush to the requests that were submitted before it. Also runs after a re-plan
// and in a new view: the program may still be blocked by that flush, and sends no other.
void Negotiator::apply_flush() {
  std::vector<Bucket*> unfinished;
  for (Bucket* bucket : partly_submitted_) {
    const bool flushed =
        std::all_of(bucket->tensors.begin(), bucket->tensors.end(), [&](const NameState* tensor) {
          return !tensor->waiting() || tensor->sequence <= flushed_;
        });
    if (flushed) unfinished.push_back(bucket);
  }
  dissolve(unfinished);
  if (oldest_open_ <= flushed_) close_open_buckets();
}

void Negotiator::dissolve(const std::vector<Bucket*>& buckets) {
  std::vector<NameState*> again;
  std::vector<std::uint64_t> ids;
  for (Bucket* bucket : buckets) {
    if (bucket->id != 0) ids.push_back(bucket->id);
    for (NameState* tensor : bucket->tensors) {
      if (tensor->waiting()) again.push_back(tensor);
    }
    forget(*bucket);
  }
  std::sort(ids.begin(), ids.end());
  for (const std::uint64_t id : ids) tell_followers(Dissolve{id});
  std::sort(again.begin(), again.end(), by_sequence);
  for (NameState* tensor : again) plan(*tensor);
}

bool Negotiator::has_all_ranks(const Bucket& bucket, const NameState& tensor) const {
  if (!tensor.waiting() || !tensor.as_planned()) return false;
  for (std::size_t rank = 1; rank < ranks(); ++rank) {
    if (bucket.ready[rank]) continue;
    if (rank >= tensor.submissions_by_name.size()) return false;
    const auto& submitted = tensor.submissions_by_name[rank];
    if (!submitted || *submitted != *tensor.own) return false;
  }
  return true;
}

/// Whether a part of the bucket could run, and no program submits the rest before it has.
bool Negotiator::waits_for_itself(const Bucket& bucket) const {
  if (bucket.missing == 0) return false;
  for (std::size_t rank = 1; rank < ranks(); ++rank) {
    const bool whole = bucket.ready[rank] || bucket.submitted_by_name[rank] == bucket.size();
    if (!whole && !blocked_[rank] && !joined_.has(rank)) return false;
  }
  return std::any_of(bucket.tensors.begin(), bucket.tensors.end(),
                     [&](const NameState* tensor) { return has_all_ranks(bucket, *tensor); });
}

void Negotiator::split_blocked_buckets() {
  std::vector<Bucket*> stuck;
  for (Bucket& bucket : table_.buckets()) {
    if (waits_for_itself(bucket)) stuck.push_back(&bucket);
  }
  for (Bucket* bucket : stuck) split(*bucket);
}

void Negotiator::split(Bucket& bucket) {
  BucketContent complete;
  BucketContent rest;
  for (const NameState* tensor : bucket.tensors) {
    if (!tensor->waiting()) continue;
    (has_all_ranks(bucket, *tensor) ? complete : rest).push_back(tensor->own);
  }
  if (bucket.id != 0) tell_followers(Dissolve{bucket.id});
  forget(bucket);
  close(std::move(complete));
  if (!rest.empty()) close(std::move(rest));
}

std::vector<Bucket*> Negotiator::idle_buckets() {
  std::vector<Bucket*> idle;
  for (Bucket& bucket : table_.buckets()) {
    if (bucket.submitted == 0) idle.push_back(&bucket);
  }
  return idle;
}

void Negotiator::set_bucket_bytes(std::size_t bucket_bytes) {
  builder_.set_bucket_bytes(bucket_bytes);
  if (leading()) dissolve(idle_buckets());
}

void Negotiator::forget_old_buckets() {
  if (table_.buckets().size() <= kMaxPlannedBuckets) return;
  std::vector<Bucket*> idle = idle_buckets();
  std::stable_sort(idle.begin(), idle.end(),
                   [](const Bucket* a, const Bucket* b) { return a->last_order < b->last_order; });
  idle.resize(std::min(idle.size(), kMaxPlannedBuckets / 2));
  dissolve(idle);
}

void Negotiator::run_if_ready(Bucket& bucket) {
  if (bucket.missing > 0 || is_refused(*bucket.content->front())) return;
  if (bucket.id == 0) {
    bucket.id = ++last_id_;
    by_id_.emplace(bucket.id, &bucket);
    Define define{bucket.id, {}};
    for (const auto& request : *bucket.content) define.requests.push_back(*request);
    tell_followers(define);
  }
  tell_followers(Run{bucket.id});
  put_in_order(bucket);
}

/// Lets a tensor fail if the ranks differ, or have joined and cannot be done without, and all have
/// submitted it.
void Negotiator::look_for_mismatch(NameState& tensor) {
  // Before the program here has submitted the name, all ranks may be about to change its shape.
  if (!tensor.waiting()) return;
  const bool refused = is_refused(*tensor.own);
  const bool differs =
      std::any_of(tensor.submissions_by_name.begin(), tensor.submissions_by_name.end(),
                  [&](const auto& submitted) { return submitted && *submitted != *tensor.own; });
  if (!refused && !differs) return;
  // Followers say that a known bucket is ready as a whole. Once it is dissolved, they submit their
  // requests by name.
  if (tensor.bucket != nullptr && tensor.bucket->id != 0) {
    dissolve({tensor.bucket});
    apply_flush();
  }
  if (tensor.submissions_by_name_count + 1 < ranks()) return;
  fail_everywhere(tensor, refused ? joined_.refusal(*tensor.own) : difference(tensor));
}

/// Two different requests, of ranks that have not joined.
std::string Negotiator::difference(const NameState& tensor) const {
  std::size_t first = 0;
  while (joined_.has(first)) ++first;
  const auto request_of = [&](std::size_t rank) {
    return rank == 0 ? tensor.own : tensor.submissions_by_name[rank];
  };
  std::size_t other = first + 1;
  while (other + 1 < ranks() && (joined_.has(other) || *request_of(other) == *request_of(first))) {
    ++other;
  }
  return "tensor '" + *tensor.name + "': rank " + std::to_string(first) + " submitted " +
         describe(*request_of(first)) + "; rank " + std::to_string(other) + " submitted " +
         describe(*request_of(other));
}

void Negotiator::fail_everywhere(NameState& tensor, std::string text) {
  Mismatch mismatch{*tensor.name, std::move(text)};
  tensor.progress = NameState::Progress::kOrdered;
  tensor.forget_submissions_by_name();
  tell_followers(mismatch);
  orders_.push_back({std::make_shared<const BucketContent>(BucketContent{tensor.own}),
                     std::move(mismatch.text),
                     {},
                     joined_at_.has_value()});
  if (tensor.bucket != nullptr) {
    dissolve({tensor.bucket});
    apply_flush();
  } else {
    builder_.remove(tensor.own);
  }
}

Status Negotiator::on_followers_item(RankRange from, NoteItem item) {
  const bool blocked = std::holds_alternative<Blocked>(item);
  std::fill_n(blocked_.begin() + from.first, from.count, blocked);
  if (blocked) return {};
  for (int rank = from.first; joined_.any() && rank < from.end(); ++rank) {
    if (!joined_.has(static_cast<std::size_t>(rank))) continue;
    return Status(Code::kProtocol,
                  "rank " + std::to_string(rank) + " has joined, and submits something");
  }
  if (auto* submission = std::get_if<SubmitByName>(&item)) {
    return on_submit_by_name(from, std::move(*submission));
  }
  if (const auto* ready = std::get_if<BucketReady>(&item)) return on_ready(from, *ready);
  if (auto* call = std::get_if<SubmitToGroup>(&item)) {
    return on_submit_to_group(from, std::move(call->call));
  }
  if (const auto* joined = std::get_if<Joined>(&item)) return on_joined(from, *joined);
  return Status(Code::kProtocol, "a follower may not send orders");
}

Status Negotiator::on_submit_to_group(RankRange from, GroupRequest request) {
  if (request.ranks.back() >= size_) {
    return Status(Code::kProtocol,
                  "rank " + std::to_string(request.ranks.back()) + " of a group is no rank");
  }
  Result<std::optional<RunInGroup>> order = groups_.submitted(from, std::move(request), joined_);
  if (!order.ok() || !order.value()) return order.status();
  tell_followers(*order.value());
  put_in_order(*std::move(order).value());
  return {};
}

Status Negotiator::on_submit_by_name(RankRange from, SubmitByName submission) {
  if (joined_.has(0)) submit_here(submission.request);
  NameState& tensor = table_.at(submission.request.name);
  Bucket* bucket = tensor.bucket;
  tensor.submissions_by_name.resize(ranks());
  const auto first = static_cast<std::size_t>(from.first);
  const auto end = static_cast<std::size_t>(from.end());
  for (std::size_t rank = first; rank < end; ++rank) {
    if (!tensor.submissions_by_name[rank] && (bucket == nullptr || !bucket->ready[rank])) continue;
    Status twice(Code::kProtocol, "tensor '" + submission.request.name + "' is announced twice");
    table_.release(tensor);
    return twice;
  }
  const bool as_planned =
      bucket != nullptr && submission.request == *(*bucket->content)[tensor.index];
  const auto request = std::make_shared<const TensorRequest>(std::move(submission.request));
  for (std::size_t rank = first; rank < end; ++rank) {
    tensor.submissions_by_name[rank] = request;
    if (as_planned) ++bucket->submitted_by_name[rank];
  }
  tensor.submissions_by_name_count += end - first;
  if (as_planned) {
    bucket->missing -= end - first;
    run_if_ready(*bucket);
  }
  look_for_mismatch(tensor);
  return {};
}

Status Negotiator::on_ready(RankRange from, const BucketReady& ready) {
  const auto entry = by_id_.find(ready.bucket);
  if (entry == by_id_.end()) {
    // The bucket was dissolved meanwhile. The followers submit its requests by name when they
    // learn of that.
    if (ready.bucket <= last_id_) return {};
    return Status(Code::kProtocol, "bucket " + std::to_string(ready.bucket) +
                                       " does not exist and is reported ready");
  }
  if (joined_.has(0)) {
    const std::shared_ptr<const BucketContent> content = entry->second->content;
    for (const auto& request : *content) submit_here(*request);
    if (!by_id_.contains(ready.bucket)) return {};
  }
  Bucket& bucket = *entry->second;
  const auto end = static_cast<std::size_t>(from.end());
  for (auto rank = static_cast<std::size_t>(from.first); rank < end; ++rank) {
    if (bucket.ready[rank] || bucket.submitted_by_name[rank] > 0) {
      return Status(Code::kProtocol,
                    "bucket " + std::to_string(ready.bucket) + " is reported ready twice");
    }
    bucket.ready[rank] = true;
    bucket.missing -= bucket.size();
  }
  run_if_ready(bucket);
  if (is_refused(*bucket.content->front())) look_for_mismatch(*bucket.tensors.front());
  return {};
}

}  // namespace elastic::coordinator
