#include "runtime/synchronisation.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/tensor_bytes.hpp"
#include "coordinator/operation.hpp"
#include "runtime/state_difference.hpp"
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
};

/// Tells everybody the size of the image of the state that is the job's.
class HeaderOperation : public coordinator::Operation {
 public:
  HeaderOperation(const Header& mine, Header& jobs, const char* doing)
      : mine_(mine), jobs_(jobs), doing_(doing) {}
  collectives::Call call(const Members& members) override {
    collectives::Call call;
    call.kind = collectives::Kind::kBroadcast;
    call.root = members.first_synced();
    call.sections = {{DType::kU8, sizeof(Header), 0}};
    call.error = "rank " + std::to_string(members.rank) + " " + doing_;
    call.fingerprint.kind = static_cast<std::uint8_t>(transport::OwnCall::kStateSize);
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
  const char* const doing_;
};

/// The state's image and its large entries, from all members that have them to all that do not.
/// Donors send from where they lie; receivers collect them beside their state, which stays whole,
/// in `room` if that is large enough.
class TransferOperation : public coordinator::Operation {
 public:
  TransferOperation(State& state, training::Image& mine, std::size_t bytes,
                    collectives::Buffer& room)
      : state_(state), mine_(mine), room_(room), large_(training::large_entries(state)) {
    add_section(bytes);
    for (const auto& entry : large_) add_section(entry.size());
  }

  collectives::Call call(const Members& members) override {
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
  void pack(const Members& members, collectives::Payload& payload) override {
    if (!has_state(members, members.rank)) {
      if (room_.size() > 0) std::swap(payload.data, room_);
      room_.resize(0);
      return payload.data.resize(end());
    }
    payload.data.resize(0);
    // An image of another size is found out by those that receive it.
    mine_.resize(sections_.front().count);
    payload.elsewhere.emplace_back(mine_);
    payload.elsewhere.insert(payload.elsewhere.end(), large_.begin(), large_.end());
  }
  void unpack(const Members& members, const collectives::Payload& payload) override {
    if (has_state(members, members.rank)) return;
    std::vector<std::span<const std::byte>> received;
    for (const collectives::Section& section : sections_) {
      received.push_back(payload.data.bytes().subspan(section.offset, section.count));
    }
    auto restored = training::restore(state_, received.front(), std::span(received).subspan(1));
    outcome_ = restored.status();
    if (restored.ok()) hashes_ = std::move(restored).value();
  }
  const Status& outcome() const { return outcome_; }
  /// Of the state's entries, after the transfer.
  std::vector<std::uint64_t> hashes() const {
    return hashes_.empty() ? training::hashes(state_) : hashes_;
  }

 private:
  void add_section(std::size_t bytes) {
    sections_.push_back({DType::kU8, bytes, collectives::aligned(end())});
  }
  std::size_t end() const {
    return sections_.empty() ? 0 : sections_.back().offset + sections_.back().count;
  }

  State& state_;
  training::Image& mine_;
  collectives::Buffer& room_;
  const std::vector<std::span<std::byte>> large_;
  std::vector<collectives::Section> sections_;
  Status outcome_;
  std::vector<std::uint64_t> hashes_;  // of what was received
};

/// What a donor has sent lies in the program's memory, and until all have completed the next
/// operation the lane may be asked for it again. If it does not come to that, the lane ends.
class Lent {
 public:
  explicit Lent(coordinator::Lane& lane) : lane_(&lane) {}
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  ~Lent() {
    if (lane_ == nullptr) return;
    lane_->close(Status(Code::kInternal, "the synchronisation of the state was broken off"));
  }
  void given_back() { lane_ = nullptr; }

 private:
  coordinator::Lane* lane_;
};

/// One attempt; `agreed` tells whether all members have the same state after it.
Status attempt(State& state, Control& control, const char* doing, collectives::Buffer& room,
               bool& agreed, std::string& why) {
  coordinator::Lane& lane = control.lane(kUnnamedLane);
  const Milliseconds timeout = control.options().view_timeout;

  const std::uint64_t brought = state.commits();
  training::Image image = training::serialize(state);
  const Header mine{image.size()};
  Header jobs;
  HeaderOperation header(mine, jobs, doing);
  if (auto done = lane.run(header, timeout); !done.ok()) return done.status();
  if (!can_exist(jobs.bytes, 1)) {
    return Status(Code::kProtocol, "the member that gives the state says that its image has " +
                                       std::to_string(jobs.bytes) +
                                       " bytes, more than any memory has");
  }

  if (Status fits = training::check_image_bytes(state, jobs.bytes); !fits.ok()) {
    // The others are not to wait in the transfer for a worker that takes no part.
    control.abandon(fits);
    return fits;
  }

  Lent memory(lane);
  TransferOperation transfer(state, image, jobs.bytes, room);
  // A mismatch, which all members have: large entries differ in size, or the donor changed between
  // the two operations, to one whose state has another size. The comparison tells.
  const auto transferred = lane.run(transfer, timeout);
  const Status& moved = transferred.status();
  if (!moved.ok() && moved.code() != Code::kMismatch) return moved;

  const Layout entries = training::layout(state);
  std::vector<std::uint64_t> own = state_summary(entries, transfer.hashes(), state.commits());
  std::vector<std::uint64_t> all;
  std::vector<std::size_t> lengths;
  coordinator::AllgatherOperation compare(
      ConstTensorView{own.data(), own.size(), DType::kI64, {}},
      [&](std::span<const std::byte> bytes, const std::vector<std::size_t>& counts) {
        lengths = counts;
        all.resize(bytes.size() / sizeof(std::uint64_t));
        if (!bytes.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
      },
      transport::OwnCall::kStateHashes);
  auto done = lane.run(compare, timeout);
  if (!done.ok()) return done.status();
  memory.given_back();
  why = state_difference(all, lengths, entries);
  if (why.empty() && !moved.ok()) why = moved.message();
  if (why.empty() && !transfer.outcome().ok()) why = transfer.outcome().message();
  agreed = why.empty();
  if (!agreed) return {};

  if (brought > state.commits()) {
    log::warn(
        "this worker came with a state of {} steps, and gave it up for the job's, which has {}; a "
        "checkpoint is loaded where rank 0 starts",
        brought, state.commits());
  }
  control.gate().set_commits(state.commits());
  control.set_synced();
  training::set_members(state, done.value().workers(), control.identity().id);
  return {};
}

}  // namespace

collectives::Buffer make_room(std::size_t bytes) {
  constexpr std::size_t kGrowth = std::size_t{1} << 20;  // of the job's objects, over this worker's
  constexpr std::size_t kPage = 4096;
  collectives::Buffer room;
  room.resize(bytes + kGrowth);
  for (std::size_t at = 0; at < room.size(); at += kPage) room.data()[at] = std::byte{0};
  return room;
}

Status synchronise(State& state, Control& control, const char* doing, collectives::Buffer room) {
  std::string why;
  for (int i = 0; i < kAttempts; ++i) {
    bool agreed = false;
    if (Status status = attempt(state, control, doing, room, agreed, why); !status.ok()) {
      // Workers that are set up differently: those that fail first would leave the last one alone.
      if (status.code() == Code::kMismatch && !control.synced()) control.fail_job(status);
      return status;
    }
    if (agreed) return {};
    log::warn("state differs after synchronisation, trying again: {}", why);
  }
  const Status differs(Code::kMismatch, "the state cannot be made the same on all members: " + why);
  // Otherwise those that end last would find themselves alone, and train on.
  control.fail_job(differs);
  return differs;
}

}  // namespace elastic::runtime
