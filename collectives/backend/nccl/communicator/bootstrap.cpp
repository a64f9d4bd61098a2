#include "collectives/backend/nccl/communicator/bootstrap.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

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
            "), and NCCL needs one for each rank: choose it by elastic::local_rank(), "
            "start no more ranks on a host than it has devices, or take another backend "
            "(ELASTIC_BACKEND=native); for a test ranks can share one if each has another "
            "NCCL_HOSTID",
        static_cast<int>(rank), view.generation);
  }
  return {};
}

}  // namespace

Status Bootstrap::meet(const Status& own) {
  const std::string id(id_.internal, sizeof id_.internal);
  auto messages = plan_.exchange.allgather(
      bootstrap_message(own, (plan_.view.rank == 0 ? id : "") + plan_.place));
  if (!messages.ok()) return messages.status();
  Status met = verdict_of(messages.value(), plan_.view);
  return met.ok() ? read(std::move(messages).value()) : met;
}

/// Takes NCCL's id from rank 0's message, before its place, and compares the places of all ranks.
Status Bootstrap::read(std::vector<std::string> messages) {
  for (std::string& each : messages) each.erase(0, 1);
  std::string& first = messages.front();
  if (first.size() < sizeof id_.internal) {
    return Status(Code::kProtocol, "rank 0 handed out what is no id of NCCL", 0);
  }
  std::memcpy(id_.internal, first.data(), sizeof id_.internal);
  first.erase(0, sizeof id_.internal);
  return require_distinct_devices(messages, plan_.view);
}

Status Bootstrap::agree(const Status& own) const {
  const auto messages = plan_.exchange.allgather(bootstrap_message(own, ""));
  return messages.ok() ? verdict_of(messages.value(), plan_.view) : messages.status();
}

}  // namespace elastic::collectives::nccl
