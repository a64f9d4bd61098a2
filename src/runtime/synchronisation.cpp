#include "runtime/synchronisation.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "coordinator/operation.hpp"
#include "training/boundary.hpp"
#include "training/state_image.hpp"

namespace elastic::runtime {

namespace {

using coordinator::Members;

/// While nobody has the job's state, whose state it becomes can change with each death; so often is
/// the synchronisation begun anew.
constexpr int kAttempts = 3;

bool has_state(const Members& members, int rank) {
  return rank == members.first_synced() || members.synced[static_cast<std::size_t>(rank)];
}

struct Header {
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;
};

/// Tells everybody the size and hash of the state that is the job's.
class HeaderOperation : public coordinator::Operation {
 public:
  HeaderOperation(const Header& mine, Header& jobs) : mine_(mine), jobs_(jobs) {}
  collectives::Call call(const Members& members) override {
    collectives::Call call;
    call.kind = collectives::Kind::kBroadcast;
    call.root = members.first_synced();
    call.sections = {{DType::kU8, sizeof(Header), 0}};
    call.fingerprint.kind = static_cast<std::uint8_t>(call.kind);
    call.fingerprint.dtype = static_cast<std::uint8_t>(DType::kU8);
    call.fingerprint.detail = static_cast<std::uint32_t>(call.root);
    call.fingerprint.count = sizeof(Header);
    return call;
  }
  void pack(const Members& /*members*/, collectives::Payload& payload) override {
    payload.data.resize(sizeof(Header));
    std::memcpy(payload.data.data(), &mine_, sizeof(Header));
  }
  void unpack(const Members& /*members*/, const collectives::Payload& payload) override {
    std::memcpy(&jobs_, payload.data.data(), sizeof(Header));
  }

 private:
  const Header& mine_;
  Header& jobs_;
};

/// The state's image, from all members that have it to all that do not.
class TransferOperation : public coordinator::Operation {
 public:
  TransferOperation(State& state, const training::Image& mine, std::size_t bytes)
      : state_(state), mine_(mine), bytes_(bytes) {}

  collectives::Call call(const Members& members) override {
    collectives::Call call;
    call.kind = collectives::Kind::kTransfer;
    for (int rank = 0; rank < members.size(); ++rank) {
      (has_state(members, rank) ? call.donors : call.receivers).push_back(rank);
    }
    call.sections = {{DType::kU8, bytes_, 0}};
    call.fingerprint.kind = static_cast<std::uint8_t>(call.kind);
    call.fingerprint.dtype = static_cast<std::uint8_t>(DType::kU8);
    call.fingerprint.count = bytes_;
    return call;
  }
  void pack(const Members& members, collectives::Payload& payload) override {
    payload.data.resize(bytes_);
    if (has_state(members, members.rank)) {
      std::memcpy(payload.data.data(), mine_.data(), std::min(bytes_, mine_.size()));
    }
  }
  void unpack(const Members& members, const collectives::Payload& payload) override {
    if (!has_state(members, members.rank))
      outcome_ = training::restore(state_, payload.data.bytes());
  }
  const Status& outcome() const { return outcome_; }

 private:
  State& state_;
  const training::Image& mine_;
  std::size_t bytes_;
  Status outcome_;
};

/// Where the entries' hashes of all members differ: rank and entry, for people. Empty if nowhere.
std::string difference(const std::vector<std::uint64_t>& all, std::size_t entries,
                       const std::vector<training::LayoutEntry>& layout) {
  for (std::size_t i = entries; i < all.size(); ++i) {
    if (all[i] == all[i % entries]) continue;
    const std::size_t entry = i % entries;
    return "rank " + std::to_string(i / entries) + " differs from rank 0 in state entry '" +
           (entry < layout.size() ? layout[entry].name : std::string("commits")) + "'";
  }
  return {};
}

/// One attempt; `agreed` tells whether all members have the same state after it.
Status attempt(State& state, Control& control, bool& agreed, std::string& why) {
  coordinator::Lane& lane = control.lane(kUnnamedLane);
  const Milliseconds timeout = control.options().view_timeout;

  const training::Image image = training::serialize(state);
  const Header mine{image.size(), training::total_hash(state)};
  Header jobs;
  HeaderOperation header(mine, jobs);
  if (auto done = lane.run(header, timeout); !done.ok()) return done.status();

  TransferOperation transfer(state, image, jobs.bytes);
  if (auto done = lane.run(transfer, timeout); !done.ok()) {
    // The donor changed between the two operations, to one whose state has another size.
    if (done.status().code() != Code::kMismatch) return done.status();
    why = done.status().message();
    return {};
  }

  std::vector<std::uint64_t> own = training::hashes(state);
  own.push_back(state.commits());
  std::vector<std::uint64_t> all;
  coordinator::AllgatherOperation compare(
      ConstTensorView{own.data(), own.size(), DType::kI64, {}},
      [&all](std::span<const std::byte> bytes, const std::vector<std::size_t>& /*counts*/) {
        all.resize(bytes.size() / sizeof(std::uint64_t));
        if (!bytes.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
      });
  auto done = lane.run(compare, timeout);
  if (!done.ok()) return done.status();
  why = difference(all, own.size(), training::layout(state));
  if (!transfer.outcome().ok()) why = transfer.outcome().message();
  agreed = why.empty();
  if (!agreed) return {};

  control.gate().set_commits(state.commits());
  control.set_synced();
  training::set_members(state, done.value().workers(), control.identity().id);
  return {};
}

}  // namespace

Status synchronise(State& state, Control& control) {
  std::string why;
  for (int i = 0; i < kAttempts; ++i) {
    bool agreed = false;
    if (Status status = attempt(state, control, agreed, why); !status.ok()) return status;
    if (agreed) return {};
    log::get().warn("state differs after synchronisation, trying again: {}", why);
  }
  return Status(Code::kInternal, "the state cannot be made the same on all members: " + why);
}

}  // namespace elastic::runtime
