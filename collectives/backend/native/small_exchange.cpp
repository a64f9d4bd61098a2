#include "collectives/backend/native/small_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace elastic::collectives {
namespace {

/// Greater counts are too large in any type.
constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 20;

bool is_exchanged(Kind kind) {
  return kind == Kind::kBroadcast || kind == Kind::kAllgather || kind == Kind::kAlltoall ||
         kind == Kind::kGather || kind == Kind::kScatter || kind == Kind::kScan;
}

/// How many counts of blocks the message of a rank begins with; of a scatter the root's.
std::size_t counts_of(const SmallExchange::Part& part, int size) {
  if (part.kind == Kind::kAllgather || part.kind == Kind::kGather) return 1;
  const bool all = part.kind == Kind::kScatter || (part.kind == Kind::kAlltoall && part.ragged);
  return all ? static_cast<std::size_t>(size) : 0;
}

std::size_t bytes_of_counts(const SmallExchange::Part& part, int size) {
  return counts_of(part, size) * sizeof(std::uint64_t);
}

}  // namespace

bool SmallExchange::fits(const Part& part, std::size_t most) const {
  return bytes_of_counts(part, size_) + part.count * size_of(part.dtype) <= most;
}

/// With counts in the messages the sizes on other ranks are not known yet.
bool SmallExchange::takes(const Part& part, std::size_t most) const {
  if (!is_exchanged(part.kind)) return false;
  const std::size_t header = bytes_of_counts(part, size_);
  return header > 0 ? header <= most : fits(part, most);
}

bool SmallExchange::gives(int rank) const {
  const bool root_alone = part_.kind == Kind::kBroadcast || part_.kind == Kind::kScatter;
  return !root_alone || rank == part_.root;
}

std::size_t SmallExchange::counts_in_message(int rank) const {
  return gives(rank) ? counts_of(part_, size_) : 0;
}

std::span<const std::byte> SmallExchange::begin(const Part& part, std::size_t most) {
  part_ = part;
  part_.counts = {};
  part_.input = {};
  most_ = most;
  own_.resize(header(rank_));
  if (!part.counts.empty() && !own_.empty()) {
    std::memcpy(own_.data(), part.counts.data(), own_.size());
  } else {
    const std::uint64_t count =
        part.kind == Kind::kScatter ? part.count / static_cast<std::size_t>(size_) : part.count;
    for (std::size_t at = 0; at < own_.size(); at += sizeof(count)) {
      std::memcpy(own_.data() + at, &count, sizeof(count));
    }
  }
  if (gives(rank_) && part.count > 0 && fits(part, most)) {
    const std::byte* const from = part.input.data();
    own_.insert(own_.end(), from, from + part.count * size_of(part.dtype));
  }
  return own_;
}

std::size_t SmallExchange::slot_bytes() const {
  return counts_of(part_, size_) > 0 ? most_ : part_.count * size_of(part_.dtype);
}

/// All ranks see the same counts, so all decide alike whether all data has come.
Result<bool> SmallExchange::finish(Messages messages, Payload& payload) {
  const auto too_short = [](int rank) {
    return Status(Code::kProtocol, "the message of a small call is shorter than its content", rank);
  };
  if (!read_counts(messages)) return too_short(-1);
  measure();
  for (int rank = 0; rank < size_; ++rank) {
    if (header(rank) + bytes_[static_cast<std::size_t>(rank)] > most_) return false;
  }
  for (int rank = 0; rank < size_; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (messages[at].size() < header(rank) + bytes_[at]) return too_short(rank);
  }
  collect(messages, payload);
  return true;
}

bool SmallExchange::read_counts(Messages messages) {
  counts_.clear();
  for (int rank = 0; rank < size_; ++rank) {
    const std::span<const std::byte> its = messages[static_cast<std::size_t>(rank)];
    if (its.size() < header(rank)) return false;
    const std::size_t before = counts_.size();
    counts_.resize(before + counts_in_message(rank));
    if (header(rank) > 0) std::memcpy(counts_.data() + before, its.data(), header(rank));
  }
  return true;
}

/// Finds the bytes that each rank gives, by its counts, or as all ranks know them.
void SmallExchange::measure() {
  const std::size_t element = size_of(part_.dtype);
  bytes_.clear();
  auto count = counts_.begin();
  for (int rank = 0; rank < size_; ++rank) {
    if (!gives(rank)) {
      bytes_.push_back(0);
      continue;
    }
    std::size_t elements = counts_.empty() ? part_.count : 0;
    for (std::size_t i = counts_in_message(rank); i > 0; --i, ++count) {
      elements += static_cast<std::size_t>(std::min(*count, kMostCounted));
    }
    bytes_.push_back(elements * element);
  }
}

void SmallExchange::collect(Messages messages, Payload& payload) const {
  payload.data.resize(std::accumulate(bytes_.begin(), bytes_.end(), std::size_t{0}));
  std::byte* into = payload.data.data();
  for (int rank = 0; rank < size_; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (bytes_[at] > 0) std::memcpy(into, messages[at].data() + header(rank), bytes_[at]);
    into += bytes_[at];
  }
  if (part_.kind == Kind::kBroadcast) return;
  Blocks& blocks = payload.form.emplace<Blocks>();
  blocks.counts = counts_;
  if (!counts_.empty()) return;
  // Equal blocks, or the tensors of a scan.
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t blocks_of_each = part_.kind == Kind::kAlltoall ? ranks : 1;
  blocks.counts.assign(ranks * blocks_of_each, part_.count / blocks_of_each);
}

}  // namespace elastic::collectives
