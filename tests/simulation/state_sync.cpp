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

Call HeaderOperation::call(const Members& members) {
  Call call = call_of(Kind::kBroadcast, sizeof bytes_);
  call.root = members.first_synced();
  call.fingerprint.detail = static_cast<std::uint32_t>(call.root);
  return call;
}
void HeaderOperation::pack(const Members& /*members*/, Payload& payload) {
  payload.data.resize(sizeof bytes_);
  std::memcpy(payload.data.data(), &bytes_, sizeof bytes_);
}
void HeaderOperation::unpack(const Members& /*members*/, const Payload& payload) {
  std::memcpy(&bytes_, payload.data.data(), sizeof bytes_);
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
