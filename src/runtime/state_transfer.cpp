#include "runtime/state_transfer.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>

namespace elastic::runtime {

using coordinator::Members;

namespace {

bool has_state(const Members& members, int rank) {
  return rank == members.first_synced() || members.synced[static_cast<std::size_t>(rank)];
}

}  // namespace

StateTransfer::StateTransfer(State& state, training::Image& mine, std::size_t bytes,
                             collectives::Buffer& room)
    : state_(state), mine_(mine), room_(room), large_(training::large_entries(state)) {
  add_section(bytes);
  for (const auto& entry : large_) add_section(entry.size());
}

collectives::Call StateTransfer::call(const Members& members) {
  had_state_ =
      std::find(members.synced.begin(), members.synced.end(), true) != members.synced.end();
  collectives::Call call;
  call.kind = collectives::Kind::kTransfer;
  for (int rank = 0; rank < members.size(); ++rank) {
    (has_state(members, rank) ? call.donors : call.receivers).push_back(rank);
  }
  call.sections = sections_;
  call.fingerprint.kind = static_cast<std::uint8_t>(call.kind);
  call.fingerprint.dtype = static_cast<std::uint8_t>(DType::kU8);
  call.fingerprint.count = end();
  return call;
}

void StateTransfer::pack(const Members& members, collectives::Payload& payload) {
  if (!has_state(members, members.rank)) {
    if (room_.size() > 0) std::swap(payload.data, room_);
    room_.resize(0);
    return payload.data.resize(end());
  }
  payload.data.resize(0);
  // If the image has another size, the receivers find that out.
  mine_.resize(sections_.front().count);
  auto& sections = payload.form.emplace<collectives::StateSections>().sections;
  sections.emplace_back(mine_);
  sections.insert(sections.end(), large_.begin(), large_.end());
}

void StateTransfer::unpack(const Members& members, const collectives::Payload& payload) {
  if (has_state(members, members.rank)) return;
  std::vector<std::span<const std::byte>> received;
  for (const collectives::Section& section : sections_) {
    received.push_back(payload.data.bytes().subspan(section.offset, section.count));
  }
  restore(received);
}

/// Restores the received state. An exception of an object's `save` becomes the outcome, as one of
/// `load` does: thrown here, it would end this worker before the others learn the reason.
void StateTransfer::restore(const std::vector<std::span<const std::byte>>& received) {
  const auto refused = [](const std::string& text) {
    return Status(Code::kRefused, "save() of an object in it threw" + text);
  };
  try {
    auto restored = training::restore(state_, received.front(), std::span(received).subspan(1));
    outcome_ = restored.status();
    if (restored.ok()) hashes_ = std::move(restored).value();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    outcome_ = refused(std::string(": ") + error.what());
  } catch (...) {
    outcome_ = refused("");
  }
}

std::vector<std::uint64_t> StateTransfer::hashes() const {
  return hashes_.empty() ? training::hashes(state_) : hashes_;
}

void StateTransfer::add_section(std::size_t bytes) {
  sections_.push_back({DType::kU8, bytes, collectives::aligned(end())});
}

std::size_t StateTransfer::end() const {
  return sections_.empty() ? 0 : sections_.back().offset + sections_.back().count;
}

}  // namespace elastic::runtime
