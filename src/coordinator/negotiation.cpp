#include "coordinator/negotiation.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace elastic::coordinator {
namespace {

Status has_joined(const TensorRequest& request) {
  return Status(Code::kInvalidArgument, "tensor '" + request.name +
                                            "' is submitted after join was called here; submit it "
                                            "before, or when join has returned");
}

std::string name_of(RankRange ranks) {
  if (ranks.count == 1) return "rank " + std::to_string(ranks.first);
  return "ranks " + std::to_string(ranks.first) + " to " + std::to_string(ranks.end() - 1);
}

}  // namespace

Negotiator::Negotiator(std::size_t bucket_bytes)
    : builder_(bucket_bytes), oldest_open_(std::numeric_limits<std::uint64_t>::max()) {}

Status Negotiator::submit(TensorRequest request) {
  if (Status valid = validate(request); !valid.ok()) return valid;
  if (joined_at_) return has_joined(request);
  if (leading()) forget_old_buckets();
  NameState& tensor = table_.at(request.name);
  if (tensor.own) {
    return Status(Code::kInvalidArgument,
                  "tensor '" + request.name +
                      "' is submitted again before its last submission is complete; wait for that, "
                      "or use another name");
  }
  tensor.own = std::make_shared<const TensorRequest>(std::move(request));
  tensor.sequence = ++last_sequence_;
  tensor.progress = NameState::Progress::kWaiting;
  if (leading()) {
    lead(tensor);
  } else if (rank_ > 0) {
    follow(tensor);
  }
  return {};
}

Status Negotiator::submit(GroupRequest request) {
  if (joined_at_) return has_joined(request.request);
  if (Status valid = groups_.submit(request); !valid.ok()) return valid;
  if (leading()) return on_submit_to_group({0, 1}, std::move(request));
  told_blocked_ = false;
  say(SubmitToGroup{std::move(request)}, nullptr);
  return {};
}

void Negotiator::flush() {
  flushed_ = last_sequence_;
  if (leading()) apply_flush();
}

void Negotiator::force_flush() {
  if (flushed_ == last_sequence_ && rank_ > 0 && !joined_at_) tell_that_blocked();
  if (!leading()) return gathering_.release();
  if (any_rank_waits_for_open_bucket()) close_open_buckets();
  if (flushed_ == last_sequence_) split_blocked_buckets();
}

Status Negotiator::on_note(RankRange from, std::span<const std::byte> note) {
  const RankRange below = leading() ? RankRange{1, size_ - 1} : RankRange{rank_ + 1, subtree_ - 1};
  const bool expected = below.holds(from) || (!leading() && from == RankRange{0, 1});
  if (!expected || rank_ < 0) {
    return Status(Code::kProtocol, "rank " + std::to_string(rank_) + " of " +
                                       std::to_string(size_) + " expects no note from " +
                                       name_of(from));
  }
  const std::string context = name_of(from) + " on named tensors";
  Result<std::vector<NoteItem>> items = read_note(note);
  if (!items.ok()) return items.status().within(context);
  for (NoteItem& item : items.value()) {
    if (Status applied = apply(from, std::move(item)); !applied.ok()) {
      return applied.within(context);
    }
  }
  if (joined_.has(0)) flush();  // the program here submits nothing of its own
  return {};
}

Status Negotiator::apply(RankRange from, NoteItem item) {
  if (leading()) return on_followers_item(from, std::move(item));
  return from.first == 0 ? on_leaders_item(std::move(item)) : gather(from, item);
}

Status Negotiator::completed(const OrderItem& order) {
  if (order.last_joined) {
    joined_at_.reset();
    return {};
  }
  if (order.is_of_group()) {
    groups_.completed(order.requests->front()->name);
    return {};
  }
  if (order.is_neutral && !leading()) return {};
  for (const auto& request : *order.requests) {
    NameState* tensor = table_.find(request->name);
    if (tensor == nullptr || tensor->progress != NameState::Progress::kOrdered) {
      return Status(Code::kInternal,
                    "tensor '" + request->name + "' is complete and was not ordered in this view");
    }
    tensor->own.reset();
    tensor->progress = NameState::Progress::kIdle;
    tensor->submitted_by_name = false;
    table_.release(*tensor);
  }
  if (joined_.has(0)) submit_here_what_is_awaited();
  return {};
}

void Negotiator::restart(int rank, int size, int subtree) {
  rank_ = rank;
  size_ = size;
  subtree_ = subtree;
  last_id_ = 0;
  told_blocked_ = false;
  blocked_.assign(ranks(), false);
  builder_.clear();
  oldest_open_ = std::numeric_limits<std::uint64_t>::max();
  notes_.clear();
  gathering_.restart({rank, subtree});
  groups_.restart();
  joined_.restart(ranks());
  orders_.clear();
  by_id_.clear();
  partly_submitted_.clear();
  // Buckets without a definition in the ending view are dropped if there are too many: they are
  // useful only if views follow in quick succession.
  const bool crowded = table_.buckets().size() > kMaxPlannedBuckets;
  for (auto at = table_.buckets().begin(); at != table_.buckets().end();) {
    Bucket& bucket = *at++;
    if (crowded && bucket.id == 0) {
      table_.erase(bucket);
      continue;
    }
    bucket.id = 0;
    bucket.reset(ranks());
  }
  std::vector<NameState*> waiting;
  std::vector<NameState*> unused;
  for (auto& [name, tensor] : table_.names()) {
    tensor.forget_submissions_by_name();
    tensor.submitted_by_name = false;
    tensor.progress = NameState::Progress::kIdle;  // those waiting are submitted again below
    if (joined_at_) tensor.own.reset();            // it was submitted in the place of others
    if (tensor.own) {
      waiting.push_back(&tensor);
    } else {
      unused.push_back(&tensor);
    }
  }
  for (NameState* tensor : unused) table_.release(*tensor);
  std::sort(waiting.begin(), waiting.end(),
            [](const NameState* a, const NameState* b) { return a->sequence < b->sequence; });
  // Submits them again, one by one: a request that dissolves a bucket re-plans only those before
  // it.
  for (NameState* tensor : waiting) {
    tensor->progress = NameState::Progress::kWaiting;
    leading() ? lead(*tensor) : follow(*tensor);
  }
  if (joined_at_) tell_joined();
  if (leading()) apply_flush();
}

std::vector<RanksNote> Negotiator::take_outgoing() {
  if (!leading()) return gathering_.take();
  std::vector<RanksNote> taken;
  for (std::vector<std::byte>& bytes : notes_.take()) taken.push_back({{0, 1}, std::move(bytes)});
  return taken;
}

std::vector<OrderItem> Negotiator::take_orders() {
  return std::exchange(orders_, {});
}

void Negotiator::forget(Bucket& bucket) {
  partly_submitted_.erase(&bucket);
  if (bucket.id != 0) by_id_.erase(bucket.id);
  table_.erase(bucket);
}

void Negotiator::note_submitted(Bucket& bucket) {
  ++bucket.submitted;
  if (bucket.partly_submitted()) {
    partly_submitted_.insert(&bucket);
  } else {
    partly_submitted_.erase(&bucket);
  }
}

void Negotiator::put_in_order(Bucket& bucket) {
  for (NameState* tensor : bucket.tensors) {
    if (!tensor->own) continue;  // of a follower that has joined
    tensor->progress = NameState::Progress::kOrdered;
    tensor->forget_submissions_by_name();
  }
  bucket.reset(ranks());
  partly_submitted_.erase(&bucket);
  bucket.last_order = ++orders_made_;
  told_blocked_ = false;  // its result lets programs go on
  blocked_.assign(ranks(), false);
  orders_.push_back({bucket.content, {}, {}, joined_at_.has_value()});
}

void Negotiator::put_in_order(RunInGroup order) {
  told_blocked_ = false;
  blocked_.assign(ranks(), false);
  auto request = std::make_shared<const TensorRequest>(std::move(order.call.request));
  orders_.push_back({std::make_shared<const BucketContent>(BucketContent{std::move(request)}),
                     std::move(order.mismatch), std::move(order.call.ranks),
                     joined_at_.has_value()});
}

}  // namespace elastic::coordinator
