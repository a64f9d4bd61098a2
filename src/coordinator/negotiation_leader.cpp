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
  for (NameState* member : bucket.members) {
    ++bucket.submitted;
    --bucket.missing;
    for (std::size_t rank = 0; rank < member->announcements.size(); ++rank) {
      const auto& announced = member->announcements[rank];
      if (!announced || *announced != *member->own) continue;
      ++bucket.announced[rank];
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
    return tensor.waiting() && tensor.bucket == nullptr && tensor.announcement_count + 1 == ranks();
  });
}

// Applies the last flush to the requests that were submitted before it. Also runs after a re-plan
// and in a new view: the program may still be blocked by that flush, and sends no other.
void Negotiator::apply_flush() {
  std::vector<Bucket*> unfinished;
  for (Bucket* bucket : partly_submitted_) {
    const bool flushed =
        std::all_of(bucket->members.begin(), bucket->members.end(), [&](const NameState* member) {
          return !member->waiting() || member->sequence <= flushed_;
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
    for (NameState* member : bucket->members) {
      if (member->waiting()) again.push_back(member);
    }
    forget(*bucket);
  }
  std::sort(ids.begin(), ids.end());
  for (const std::uint64_t id : ids) tell_followers(Dissolve{id});
  std::sort(again.begin(), again.end(), by_sequence);
  for (NameState* tensor : again) plan(*tensor);
}

void Negotiator::forget_old_buckets() {
  if (table_.buckets().size() <= kMaxPlannedBuckets) return;
  std::vector<Bucket*> idle;
  for (Bucket& bucket : table_.buckets()) {
    if (bucket.submitted == 0) idle.push_back(&bucket);
  }
  std::stable_sort(idle.begin(), idle.end(),
                   [](const Bucket* a, const Bucket* b) { return a->last_order < b->last_order; });
  idle.resize(std::min(idle.size(), kMaxPlannedBuckets / 2));
  dissolve(idle);
}

void Negotiator::run_if_ready(Bucket& bucket) {
  if (bucket.missing > 0) return;
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

void Negotiator::look_for_mismatch(NameState& tensor) {
  // Before the program here has submitted the name, all ranks may be about to change its shape.
  if (!tensor.waiting() || tensor.announcement_count == 0) return;
  const auto other =
      std::find_if(tensor.announcements.begin(), tensor.announcements.end(),
                   [&](const auto& announced) { return announced && *announced != *tensor.own; });
  if (other == tensor.announcements.end()) return;
  // Followers report a known bucket as a whole. Once it is dissolved, they announce their requests
  // by name.
  if (tensor.bucket != nullptr && tensor.bucket->id != 0) {
    dissolve({tensor.bucket});
    apply_flush();
  }
  if (tensor.announcement_count + 1 == ranks()) {
    fail_everywhere(tensor, static_cast<std::size_t>(other - tensor.announcements.begin()));
  }
}

void Negotiator::fail_everywhere(NameState& tensor, std::size_t other_rank) {
  Mismatch mismatch{*tensor.name, "tensor '" + *tensor.name + "': rank 0 submitted " +
                                      describe(*tensor.own) + "; rank " +
                                      std::to_string(other_rank) + " submitted " +
                                      describe(*tensor.announcements[other_rank])};
  tensor.progress = NameState::Progress::kOrdered;
  tensor.forget_announcements();
  tell_followers(mismatch);
  orders_.push_back(
      {std::make_shared<const BucketContent>(BucketContent{tensor.own}), std::move(mismatch.text)});
  if (tensor.bucket != nullptr) {
    dissolve({tensor.bucket});
    apply_flush();
  } else {
    builder_.remove(tensor.own);
  }
}

Status Negotiator::on_announce(std::size_t rank, AnnounceRequest announce) {
  NameState& tensor = table_.at(announce.request.name);
  Bucket* bucket = tensor.bucket;
  tensor.announcements.resize(ranks());
  if (tensor.announcements[rank] || (bucket != nullptr && bucket->ready[rank])) {
    Status twice(Code::kProtocol, "tensor '" + announce.request.name + "' is announced twice");
    table_.release(tensor);
    return twice;
  }
  const bool as_planned =
      bucket != nullptr && announce.request == *(*bucket->content)[tensor.index];
  tensor.announcements[rank] = std::make_shared<const TensorRequest>(std::move(announce.request));
  ++tensor.announcement_count;
  if (as_planned) {
    ++bucket->announced[rank];
    --bucket->missing;
    run_if_ready(*bucket);
  }
  look_for_mismatch(tensor);
  return {};
}

Status Negotiator::on_ready(std::size_t rank, const BucketReady& ready) {
  const auto entry = by_id_.find(ready.bucket);
  if (entry == by_id_.end()) {
    // The bucket was dissolved meanwhile. The follower announces its requests by name when it
    // learns of that.
    if (ready.bucket <= last_id_) return {};
    return Status(Code::kProtocol, "bucket " + std::to_string(ready.bucket) +
                                       " does not exist and is reported ready");
  }
  Bucket& bucket = *entry->second;
  if (bucket.ready[rank] || bucket.announced[rank] > 0) {
    return Status(Code::kProtocol,
                  "bucket " + std::to_string(ready.bucket) + " is reported ready twice");
  }
  bucket.ready[rank] = true;
  bucket.missing -= bucket.size();
  run_if_ready(bucket);
  return {};
}

}  // namespace elastic::coordinator
