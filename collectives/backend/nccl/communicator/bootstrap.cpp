#include "collectives/backend/nccl/communicator/bootstrap.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace elastic::collectives::nccl {

namespace {

// The first byte of a message.
constexpr char kGood = '+';
constexpr char kBad = '-';

/// The text of a rank's message: one byte that says which, then `content`, or the failure `status`.
std::string bootstrap_message(const Status& status, const std::string& content) {
  if (status.ok()) return kGood + content;
  return std::string{kBad, static_cast<char>(status.code())} + status.message();
}

/// The first failure in `messages`, as the error of all ranks. `messages` are in rank order.
Status verdict_of(const std::vector<std::string>& messages, const DecidedView& view) {
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    const std::string& each = messages[rank];
    if (!each.empty() && each.front() == kGood) continue;
    const bool whole = each.size() > 2 && static_cast<Code>(each[1]) <= Code::kInternal;
    return Status(whole ? static_cast<Code>(each[1]) : Code::kProtocol,
                  "no communicator for generation " + std::to_string(view.generation) + ": rank " +
                      std::to_string(rank) + ": " +
                      (whole ? each.substr(2) : "an answer that cannot be read"),
                  static_cast<int>(rank), view.generation);
  }
  return {};
}

/// kMismatch if two of `places` (CommunicatorPlan::place) are the same, that is, two ranks use one
/// device: a mistake of the program, which all ranks find.
Status require_distinct_devices(const std::vector<std::string>& places, const DecidedView& view) {
  for (std::size_t rank = 1; rank < places.size(); ++rank) {
    const auto mine = places.begin() + static_cast<std::ptrdiff_t>(rank);
    const auto same = std::find(places.begin(), mine, *mine);
    if (mine->empty() || same == mine) continue;
    return Status(
        Code::kMismatch,
        "ranks " + std::to_string(same - places.begin()) + " and " + std::to_string(rank) +
            " have their tensors on one CUDA device (" + mine->substr(mine->rfind('/') + 1) +
            "), and NCCL needs one for each rank: choose it by the launcher's number of the worker "
            "on its host (LOCAL_RANK), not by elastic::local_rank(), which follows the members; "
            "start no more ranks on a host than it has devices, or take another backend "
            "(ELASTIC_BACKEND=native); for a test ranks can share one if each has another "
            "NCCL_HOSTID",
        static_cast<int>(rank), view.generation);
  }
  return {};
}

/// The part of a rank's first message of which the size is known. It travels as it is: all workers
/// of a job have one version of this library.
struct Introduction {
  std::uint64_t generation = 0;  ///< of the retired communicator of this rank; 0: none
  std::int32_t rank = 0;         ///< in that view
  std::int32_t size = 0;
  std::int32_t usable = 0;  ///< 1: it can be shrunk
  std::int32_t unused = 0;
};

/// The ranks of the offered view that are not in the new one. Empty: the communicator cannot be
/// shrunk, because a rank offers none, or the ranks come from different views, in another order, or
/// are all of the members of the old view.
std::vector<int> excluded_from(const std::vector<Introduction>& all) {
  const Introduction& first = all.front();
  std::vector<int> excluded;
  int next = 0;
  for (const Introduction& each : all) {
    if (each.usable == 0 || each.generation != first.generation || each.size != first.size ||
        each.rank < next || each.rank >= first.size) {
      return {};
    }
    for (; next < each.rank; ++next) excluded.push_back(next);
    ++next;
  }
  for (; next < first.size; ++next) excluded.push_back(next);
  return excluded;
}

}  // namespace

Status Bootstrap::meet(const Status& own, const std::optional<Offer>& old) {
  Introduction introduction;
  if (old) {
    introduction = {.generation = old->view.generation,
                    .rank = old->view.rank,
                    .size = old->view.size,
                    .usable = old->usable ? 1 : 0};
  }
  std::string message(sizeof introduction, '\0');
  std::memcpy(message.data(), &introduction, sizeof introduction);
  if (plan_.view.rank == 0 && !old) message.append(id_.internal, sizeof id_.internal);
  auto messages = plan_.exchange.allgather(bootstrap_message(own, message + plan_.place));
  if (!messages.ok()) return messages.status();
  Status met = verdict_of(messages.value(), plan_.view);
  return met.ok() ? read(messages.value()) : met;
}

/// Reads the introductions, NCCL's id from rank 0's message, and the places, which it compares.
Status Bootstrap::read(const std::vector<std::string>& messages) {
  std::vector<Introduction> introductions(messages.size());
  std::vector<std::string> places;
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    Introduction& its = introductions[rank];
    std::string rest = messages[rank].substr(1);
    const std::size_t id = rank == 0 ? sizeof id_.internal : 0;
    const bool whole = rest.size() >= sizeof its;
    if (whole) std::memcpy(&its, rest.data(), sizeof its);
    const std::size_t head = sizeof its + (its.generation == 0 ? id : 0);
    if (!whole || rest.size() < head) {
      return Status(Code::kProtocol,
                    "rank " + std::to_string(rank) + " handed out what is no id of NCCL",
                    static_cast<int>(rank));
    }
    if (head > sizeof its) std::memcpy(id_.internal, rest.data() + sizeof its, id);
    places.push_back(rest.substr(head));
  }
  excluded_ = excluded_from(introductions);
  making_ = !excluded_.empty()                      ? Making::kShrink
            : introductions.front().generation == 0 ? Making::kInit
                                                    : Making::kInitWithoutId;
  return require_distinct_devices(places, plan_.view);
}

Status Bootstrap::agree(const Status& own) const {
  const auto messages = plan_.exchange.allgather(bootstrap_message(own, ""));
  return messages.ok() ? verdict_of(messages.value(), plan_.view) : messages.status();
}

}  // namespace elastic::collectives::nccl
