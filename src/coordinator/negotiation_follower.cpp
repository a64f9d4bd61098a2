#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "coordinator/negotiation.hpp"

// The follower's part of the Negotiator, which runs on all ranks but 0.
namespace elastic::coordinator {
namespace {

Status unknown_bucket(std::uint64_t id, const char* what) {
  return Status(Code::kProtocol, "bucket " + std::to_string(id) + " is to be " + what +
                                     " and was not defined in this view");
}

bool names_differ(const std::vector<TensorRequest>& requests) {
  std::unordered_set<std::string_view> names;
  return std::all_of(requests.begin(), requests.end(), [&](const TensorRequest& request) {
    return names.insert(request.name).second;
  });
}

bool same_content(const BucketContent& content, const std::vector<TensorRequest>& requests) {
  return std::equal(content.begin(), content.end(), requests.begin(), requests.end(),
                    [](const auto& a, const TensorRequest& b) { return *a == b; });
}

}  // namespace

void Negotiator::follow(NameState& tensor) {
  told_blocked_ = false;
  Bucket* bucket = tensor.bucket;
  if (bucket == nullptr || bucket->id == 0 || bucket->by_name || !tensor.as_planned()) {
    submit_by_name(tensor);
    return;
  }
  note_submitted(*bucket);
  if (bucket->submitted < bucket->size()) return;
  bucket->said_ready = true;
  say(BucketReady{bucket->id}, bucket);
}

void Negotiator::submit_by_name(NameState& tensor) {
  tensor.submitted_by_name = true;
  say(SubmitByName{*tensor.own}, tensor.bucket);
}

void Negotiator::say(const NoteItem& item, const Bucket* bucket) {
  // Nothing is said twice, so this cannot fail.
  (void)gathering_.add({rank_, 1}, item, bucket == nullptr ? 0 : bucket->id);
}

/// A rank below this one says something to the leader.
Status Negotiator::gather(RankRange from, const NoteItem& item) {
  if (const auto* submission = std::get_if<SubmitByName>(&item)) {
    const NameState* tensor = table_.find(submission->request.name);
    const bool planned = tensor != nullptr && tensor->bucket != nullptr;
    return gathering_.add(from, item, planned ? tensor->bucket->id : 0);
  }
  if (const auto* ready = std::get_if<BucketReady>(&item)) {
    if (ready->bucket > last_id_) return unknown_bucket(ready->bucket, "reported ready");
    // Dissolved meanwhile: the ranks submit its requests by name when they learn of that.
    if (!by_id_.contains(ready->bucket)) return {};
    return gathering_.add(from, item, ready->bucket);
  }
  if (std::holds_alternative<Blocked>(item) || std::holds_alternative<SubmitToGroup>(item) ||
      std::holds_alternative<Joined>(item)) {
    return gathering_.add(from, item, 0);
  }
  return Status(Code::kProtocol, "a follower may not send orders");
}

Status Negotiator::on_leaders_item(NoteItem item) {
  if (const auto* run = std::get_if<Run>(&item)) return on_run(*run);
  if (auto* define = std::get_if<Define>(&item)) return on_define(std::move(*define));
  if (const auto* gone = std::get_if<Dissolve>(&item)) return on_dissolve(*gone);
  if (const auto* mismatch = std::get_if<Mismatch>(&item)) return on_mismatch(*mismatch);
  if (auto* group = std::get_if<RunInGroup>(&item)) return on_run_in_group(std::move(*group));
  if (const auto* end = std::get_if<EndJoin>(&item)) return on_end_join(*end);
  return Status(Code::kProtocol, "the leader sends only orders");
}

// Submits them in the order of the bucket; any order would do.
void Negotiator::submit_tensors_by_name(Bucket& bucket) {
  for (NameState* tensor : bucket.tensors) {
    if (tensor->waiting() && !tensor->submitted_by_name) submit_by_name(*tensor);
  }
  bucket.submitted = 0;
  bucket.by_name = true;
  partly_submitted_.erase(&bucket);
}

void Negotiator::tell_that_blocked() {
  if (std::exchange(told_blocked_, true)) return;
  const std::vector<Bucket*> partly(partly_submitted_.begin(), partly_submitted_.end());
  for (Bucket* bucket : partly) submit_tensors_by_name(*bucket);
  say(Blocked{}, nullptr);
}

Status Negotiator::on_dissolve(const Dissolve& dissolve) {
  const auto entry = by_id_.find(dissolve.bucket);
  if (entry == by_id_.end()) return unknown_bucket(dissolve.bucket, "dissolved");
  Bucket& bucket = *entry->second;
  by_id_.erase(entry);
  bucket.id = 0;
  gathering_.dissolved(dissolve.bucket);
  // This includes a bucket that was said to be ready: the leader ignores that note, before or after
  // it arrives.
  submit_tensors_by_name(bucket);
  forget(bucket);
  return {};
}

Status Negotiator::on_define(Define define) {
  if (define.bucket <= last_id_) {
    return Status(Code::kProtocol,
                  "bucket " + std::to_string(define.bucket) + " is defined out of turn");
  }
  if (!names_differ(define.requests)) {
    return Status(Code::kProtocol,
                  "bucket " + std::to_string(define.bucket) + " has the same name twice");
  }
  Bucket* bucket = nullptr;
  for (const TensorRequest& request : define.requests) {
    const NameState* tensor = table_.find(request.name);
    if (tensor == nullptr || tensor->bucket == nullptr || tensor->bucket == bucket) continue;
    if (tensor->bucket->id != 0) {
      return Status(Code::kProtocol, "tensor '" + request.name + "' is put into bucket " +
                                         std::to_string(define.bucket) + " while it is in bucket " +
                                         std::to_string(tensor->bucket->id));
    }
    if (same_content(*tensor->bucket->content, define.requests)) {
      bucket = tensor->bucket;  // known from an earlier view
    } else {
      forget(*tensor->bucket);
    }
  }
  if (bucket == nullptr) {
    BucketContent content;
    for (TensorRequest& request : define.requests) {
      content.push_back(std::make_shared<const TensorRequest>(std::move(request)));
    }
    bucket = &table_.insert(std::move(content));
    bucket->reset(ranks());
  }
  last_id_ = bucket->id = define.bucket;
  by_id_.emplace(bucket->id, bucket);
  // The leader defines a bucket that was submitted name by name, and runs it next.
  bucket->by_name = true;
  return {};
}

Status Negotiator::on_run(const Run& run) {
  const auto entry = by_id_.find(run.bucket);
  if (entry == by_id_.end()) return unknown_bucket(run.bucket, "run");
  Bucket& bucket = *entry->second;
  for (const NameState* tensor : bucket.tensors) {
    if (joined_at_) break;  // the others' bucket
    const bool ready = tensor->submitted_by_name || bucket.said_ready;
    if (!tensor->waiting() || !ready || !tensor->as_planned()) {
      return Status(Code::kProtocol, "bucket " + std::to_string(run.bucket) +
                                         " is to be run, and tensor '" + *tensor->name +
                                         "' was not submitted here as the bucket has it");
    }
  }
  gathering_.ordered(bucket);
  put_in_order(bucket);
  return {};
}

Status Negotiator::on_run_in_group(RunInGroup order) {
  if (Status submitted = groups_.ordered(order, rank_, joined_at_.has_value()); !submitted.ok())
    return submitted;
  if (order.call.ranks.back() >= size_) {
    return Status(Code::kProtocol, "a group is to make a call, and one of its ranks is no rank");
  }
  gathering_.ordered();
  put_in_order(std::move(order));
  return {};
}

Status Negotiator::on_mismatch(const Mismatch& mismatch) {
  NameState* tensor = table_.find(mismatch.name);
  if (joined_at_) {
    if (tensor != nullptr && tensor->bucket != nullptr) forget(*tensor->bucket);
    TensorRequest request{mismatch.name, kAllreduceRequest, ReduceOp::kSum, {}};
    const auto content = std::make_shared<const BucketContent>(
        BucketContent{std::make_shared<const TensorRequest>(std::move(request))});
    orders_.push_back({content, mismatch.text, {}, true});
    return {};
  }
  if (tensor == nullptr || !tensor->waiting() || !tensor->submitted_by_name ||
      mismatch.text.empty()) {
    return Status(Code::kProtocol,
                  "tensor '" + mismatch.name + "' is to fail and was not announced from here");
  }
  if (tensor->bucket != nullptr) {
    if (tensor->bucket->id != 0) {
      return Status(Code::kProtocol, "tensor '" + mismatch.name +
                                         "' is to fail while it is in bucket " +
                                         std::to_string(tensor->bucket->id));
    }
    forget(*tensor->bucket);
  }
  tensor->progress = NameState::Progress::kOrdered;
  orders_.push_back(
      {std::make_shared<const BucketContent>(BucketContent{tensor->own}), mismatch.text});
  return {};
}

}  // namespace elastic::coordinator
