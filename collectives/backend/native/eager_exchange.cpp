#include "collectives/backend/native/eager_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace elastic::collectives {
namespace {

using transport::OpTag;

/// How many counts of blocks each rank's message begins with.
std::size_t counts_in_message(const Call& call, int size) {
  if (call.kind == Kind::kAllgather || call.kind == Kind::kGather) return 1;
  return call.kind == Kind::kAlltoall && call.ragged ? static_cast<std::size_t>(size) : 0;
}

/// Greater counts are too large in any type.
constexpr std::uint64_t kMostExchanged = transport::EagerSlot::kMostBytes + 1;

bool is_exchanged(Kind kind) {
  return kind == Kind::kBroadcast || kind == Kind::kAllgather || kind == Kind::kAlltoall ||
         kind == Kind::kGather || kind == Kind::kScan;
}

/// Most bytes of a rank's message. An alltoall gives each rank what is for the others, too, and a
/// scan is reduced by each rank: beyond this plans are faster.
std::size_t most_bytes(Kind kind, const EagerAllreduce& eager) {
  const bool gives_more = kind == Kind::kAlltoall || kind == Kind::kScan;
  return std::min(eager.most_bytes(), (gives_more ? std::size_t{4} : std::size_t{16}) << 10);
}

}  // namespace

std::span<const std::byte> EagerExchange::begin(const Call& call, const Payload& payload) {
  begun_ = false;
  if (!is_exchanged(call.kind) || call.sections.size() != 1 || payload.on_device() != nullptr) {
    return {};
  }
  const std::size_t header = counts_in_message(call, size_) * sizeof(std::uint64_t);
  const std::size_t data = bytes_of(call.sections.front());
  const std::size_t most = most_bytes(call.kind, eager_);
  const bool fits = header + data <= most;
  if (header > most || (header == 0 && !fits)) return {};
  begun_ = true;
  own_.resize(header);
  if (call.kind == Kind::kAlltoall && call.ragged) {
    std::memcpy(own_.data(), call.counts.data(), header);
  } else if (header > 0) {
    const std::uint64_t count = call.sections.front().count;
    std::memcpy(own_.data(), &count, header);
  }
  const bool gives = call.kind != Kind::kBroadcast || call.root == rank_;
  if (fits && gives && data > 0) {
    const std::byte* const from = payload.input().data() + call.sections.front().offset;
    own_.insert(own_.end(), from, from + data);
  }
  return own_;
}

std::span<const std::byte> EagerExchange::message(int rank) const {
  if (rank == rank_) return own_;
  const transport::EagerSlot& slot = eager_.from(rank);
  return {slot.payload, static_cast<std::size_t>(slot.bytes)};
}

Result<bool> EagerExchange::finish(const OpTag& tag, const Call& call, Payload& payload) {
  if (Status status = eager_.await(tag, call.fingerprint); !status.ok()) return status;
  if (!read_counts(call)) {
    return Status(Code::kProtocol, "an eager message is shorter than its counts");
  }
  if (!all_data_came(call)) return false;
  collect(call, payload);
  return true;
}

bool EagerExchange::read_counts(const Call& call) {
  const std::size_t each = counts_in_message(call, size_);
  counts_.resize(each * static_cast<std::size_t>(size_));
  for (int rank = 0; rank < size_; ++rank) {
    const std::span<const std::byte> its = message(rank);
    if (its.size() < each * sizeof(std::uint64_t)) return false;
    if (each == 0) continue;
    std::memcpy(counts_.data() + static_cast<std::size_t>(rank) * each, its.data(),
                each * sizeof(std::uint64_t));
  }
  return true;
}

/// The bytes that `rank` gives, by its counts.
std::size_t EagerExchange::data_bytes(const Call& call, int rank) const {
  const Section& section = call.sections.front();
  const std::size_t each = counts_in_message(call, size_);
  if (call.kind == Kind::kBroadcast && rank != call.root) return 0;
  if (each == 0) return bytes_of(section);
  const auto first = counts_.begin() + static_cast<std::ptrdiff_t>(each) * rank;
  std::size_t total = 0;
  for (auto count = first; count != first + static_cast<std::ptrdiff_t>(each); ++count) {
    total += static_cast<std::size_t>(std::min<std::uint64_t>(*count, kMostExchanged)) *
             size_of(section.dtype);
  }
  return total;
}

/// All ranks see the same counts, so all decide alike.
bool EagerExchange::all_data_came(const Call& call) const {
  const std::size_t header = counts_in_message(call, size_) * sizeof(std::uint64_t);
  for (int rank = 0; rank < size_; ++rank) {
    if (header + data_bytes(call, rank) > most_bytes(call.kind, eager_)) return false;
  }
  return true;
}

void EagerExchange::collect(const Call& call, Payload& payload) const {
  const std::size_t header = counts_in_message(call, size_) * sizeof(std::uint64_t);
  if (call.kind == Kind::kBroadcast) {
    const auto data = message(call.root);
    if (rank_ != call.root && !data.empty()) {
      std::memcpy(payload.data.data() + call.sections.front().offset, data.data(), data.size());
    }
    return;
  }
  std::size_t total = 0;
  for (int rank = 0; rank < size_; ++rank) total += message(rank).size() - header;
  payload.data.resize(total);
  std::byte* into = payload.data.data();
  for (int rank = 0; rank < size_; ++rank) {
    const auto data = message(rank).subspan(header);
    if (!data.empty()) std::memcpy(into, data.data(), data.size());
    into += data.size();
  }
  Blocks& blocks = payload.form.emplace<Blocks>();
  blocks.counts = counts_;
  if (!counts_.empty()) return;
  // Equal blocks, or the tensors of a scan.
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t blocks_of_each = call.kind == Kind::kAlltoall ? ranks : 1;
  blocks.counts.assign(ranks * blocks_of_each, call.sections.front().count / blocks_of_each);
}

}  // namespace elastic::collectives
