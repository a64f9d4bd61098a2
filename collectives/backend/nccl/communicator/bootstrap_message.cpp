#include "collectives/backend/nccl/communicator/bootstrap_message.hpp"

#include <algorithm>
#include <cstddef>

namespace elastic::collectives::nccl {

namespace {

// The first byte of a message.
constexpr char kGood = '+';
constexpr char kBad = '-';

}  // namespace

std::string bootstrap_message(const Status& status, const std::string& content) {
  if (status.ok()) return kGood + content;
  return std::string{kBad, static_cast<char>(status.code())} + status.message();
}

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

}  // namespace elastic::collectives::nccl
