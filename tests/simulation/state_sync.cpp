#include "state_sync.hpp"

#include <cstring>

namespace elastic::simulation {

using collectives::Call;
using collectives::Kind;
using collectives::Payload;
using coordinator::Members;

namespace {

bool has_state(const Members& members, int rank) {
  return rank == members.first_synced() || members.synced[static_cast<std::size_t>(rank)];
}

Call call_of(Kind kind, std::size_t bytes) {
  Call call;
  call.kind = kind;
  call.sections = {{DType::kU8, bytes, 0}};
  call.fingerprint.kind = static_cast<std::uint8_t>(kind);
  call.fingerprint.dtype = static_cast<std::uint8_t>(DType::kU8);
  call.fingerprint.count = bytes;
  return call;
}

}  // namespace

HeaderOperation::HeaderOperation(const std::uint64_t& bytes, runtime::Roster& roster)
    : AllgatherOperation(
          ConstTensorView{&bytes, 1, DType::kU64, {}},
          [](std::span<const std::byte> /*all*/, const std::vector<std::size_t>& /*counts*/) {},
          transport::OwnCall::kStateSize),
      roster_(roster) {}

void HeaderOperation::unpack(const Members& members, const Payload& payload) {
  AllgatherOperation::unpack(members, payload);
  roster_ = runtime::roster_of(members, members.generation);
}

TransferOperation::TransferOperation(JobState& state, std::size_t bytes)
    : state_(state), image_(bytes) {
  std::memcpy(image_.data(), &state_, sizeof state_);
}

Call TransferOperation::call(const Members& members) {
  Call call = call_of(Kind::kTransfer, image_.size());
  for (int rank = 0; rank < members.size(); ++rank) {
    (has_state(members, rank) ? call.donors : call.receivers).push_back(rank);
  }
  return call;
}
void TransferOperation::pack(const Members& members, Payload& payload) {
  if (!has_state(members, members.rank)) return payload.data.resize(image_.size());
  payload.data.resize(0);
  payload.form = collectives::StateSections{{image_}};
}
void TransferOperation::unpack(const Members& members, const Payload& payload) {
  if (has_state(members, members.rank)) return;
  std::memcpy(&state_, payload.data.data(), sizeof state_);
}

}  // namespace elastic::simulation
