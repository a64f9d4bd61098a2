#include <algorithm>
#include <utility>

#include "coordinator/negotiation.hpp"

// Ranks that have joined. The leader counts what the others submit as if these ranks had submitted
// it, too. If it has joined itself, it submits what others do. A follower that has joined takes
// part in each order with neutral inputs.
namespace elastic::coordinator {

Status Negotiator::join(std::uint64_t position) {
  if (joined_at_) {
    return Status(Code::kInvalidArgument, "join is under way already; wait until it returns");
  }
  joined_at_ = position;
  if (rank_ >= 0) tell_joined();
  return {};
}

void Negotiator::tell_joined() {
  told_blocked_ = false;
  const Joined joined{*joined_at_};
  if (!leading()) return say(joined, nullptr);
  (void)on_joined({0, 1}, joined);  // told once in a view, so this cannot fail
}

bool Negotiator::is_refused(const TensorRequest& request) const {
  return joined_.any() && !goes_on_without_joined(request.kind);
}

Status Negotiator::on_joined(RankRange from, const Joined& joined) {
  for (int rank = from.first; rank < from.end(); ++rank) {
    if (Status added = joined_.add(rank, joined.position); !added.ok()) return added;
  }
  if (joined_.all()) {
    end_join(joined_.last());
    return {};
  }
  for (int rank = from.first; rank < from.end(); ++rank) {
    if (rank > 0) submit_all_for(static_cast<std::size_t>(rank));
  }
  if (from.first == 0) submit_here_what_is_awaited();
  for (RunInGroup& order : groups_.complete_but_for(joined_)) {
    tell_followers(order);
    put_in_order(std::move(order));
  }
  return {};
}

/// All ranks have joined: none has anything under way.
void Negotiator::end_join(int last) {
  if (leading()) tell_followers(EndJoin{last});
  told_blocked_ = false;
  blocked_.assign(ranks(), false);
  joined_.restart(ranks());
  auto request = std::make_shared<const TensorRequest>(join_request());
  OrderItem order{std::make_shared<const BucketContent>(BucketContent{std::move(request)}), {}};
  order.last_joined = last;
  orders_.push_back(std::move(order));
}

Status Negotiator::on_end_join(const EndJoin& end) {
  if (!joined_at_ || end.last >= size_) {
    return Status(Code::kProtocol, "the join is to end, and this rank has not joined, or rank " +
                                       std::to_string(end.last) + " is no rank");
  }
  gathering_.ordered();
  gathering_.end_join();
  end_join(end.last);
  return {};
}

/// The tensor is about to be planned here: the ranks that have joined have submitted it alike.
void Negotiator::submit_for_joined(NameState& tensor) {
  for (std::size_t rank = 1; rank < ranks(); ++rank) {
    if (joined_.has(rank)) submit_for(rank, tensor);
  }
}

void Negotiator::submit_for(std::size_t rank, NameState& tensor) {
  tensor.submissions_by_name.resize(ranks());
  if (tensor.submissions_by_name[rank]) return;
  tensor.submissions_by_name[rank] = tensor.own;
  ++tensor.submissions_by_name_count;
  if (!tensor.as_planned()) return;
  ++tensor.bucket->submitted_by_name[rank];
  --tensor.bucket->missing;
}

/// The rank has just joined.
void Negotiator::submit_all_for(std::size_t rank) {
  std::vector<NameState*> waiting;
  for (auto& [name, tensor] : table_.names()) {
    if (tensor.waiting()) waiting.push_back(&tensor);
  }
  std::sort(waiting.begin(), waiting.end(),
            [](const NameState* a, const NameState* b) { return a->sequence < b->sequence; });
  for (NameState* tensor : waiting) {
    if (!tensor->waiting()) continue;  // ordered with one before it
    submit_for(rank, *tensor);
    if (tensor->bucket != nullptr) run_if_ready(*tensor->bucket);
    look_for_mismatch(*tensor);
  }
}

/// The leader has joined, and submits what a follower does.
void Negotiator::submit_here(const TensorRequest& request) {
  NameState& tensor = table_.at(request.name);
  if (tensor.own) return;
  tensor.own = std::make_shared<const TensorRequest>(request);
  tensor.sequence = ++last_sequence_;
  tensor.progress = NameState::Progress::kWaiting;
  lead(tensor);
}

/// Submits a tensor that followers have submitted already.
void Negotiator::submit_here_if_awaited(NameState& tensor) {
  if (tensor.own) return;
  const auto by_name =
      std::find_if(tensor.submissions_by_name.begin(), tensor.submissions_by_name.end(),
                   [](const auto& submitted) { return submitted != nullptr; });
  if (by_name != tensor.submissions_by_name.end()) {
    submit_here(TensorRequest(**by_name));
  } else if (tensor.bucket != nullptr && std::ranges::count(tensor.bucket->ready, true) > 0) {
    submit_here(TensorRequest(*(*tensor.bucket->content)[tensor.index]));
  }
}

/// The leader has just joined, or has the result of an order, which followers may have had before
/// it. In the order of names, as any would do.
void Negotiator::submit_here_what_is_awaited() {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : table_.names()) {
    if (!tensor.own) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (NameState* tensor = table_.find(name)) submit_here_if_awaited(*tensor);
  }
  flush();
}

}  // namespace elastic::coordinator
