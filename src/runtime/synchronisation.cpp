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
#include "runtime/state_transfer.hpp"
#include "training/boundary.hpp"
#include "training/state_image.hpp"

namespace elastic::runtime {

namespace {

using coordinator::Members;

/// Number of attempts. While no member has the job's state, each death can change which member
/// gives it.
constexpr int kAttempts = 3;

struct Header {
  std::uint64_t bytes = 0;
};

/// Broadcasts the size of the image of the job's state.
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

/// Guards the memory that a donor sends from. It is the program's, and the lane may be asked to
/// send it again until all members have completed the next operation. If they do not, the lane is
/// closed.
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

struct Attempt {
  bool last = false;
  bool agreed = false;  ///< all members that remain have the same state
  std::string why;      ///< why they have not
  /// The scope of a failure.
  enum class Concerns : std::uint8_t { kUnknown, kThisWorker, kJob };
  Concerns concerns = Concerns::kUnknown;
};

/// The summaries of all ranks after the transfer.
struct Comparison {
  std::vector<std::uint64_t> all;
  std::vector<std::size_t> lengths;
};

std::vector<std::uint64_t> summary(const State& state, const Layout& entries,
                                   const StateTransfer& transfer, bool last) {
  const Status& outcome = transfer.outcome();
  if (outcome.ok()) return state_summary(entries, transfer.hashes(), state.commits());
  // A refusal by an object would repeat itself; data that was damaged on the way may arrive whole.
  return refusal_summary(outcome, last || outcome.code() != Code::kMismatch);
}

/// Decides what follows if some members could not take over the job's state. If no member had it
/// before, the job has not begun, and fails. Otherwise these members leave, and the others go on.
Status judge(const StateRefusals& refusals, const StateTransfer& transfer, Control& control,
             Attempt& made) {
  if (!transfer.had_state()) {
    made.concerns = Attempt::Concerns::kJob;
    return Status(Code::kMismatch, refusals.text);
  }
  if (transfer.outcome().ok()) {
    log::warn("goes on without a worker that joined and leaves again: {}", refusals.text);
    return {};
  }
  made.concerns = Attempt::Concerns::kThisWorker;
  const Status left(Code::kMismatch, "this worker could not take the job's state over: " +
                                         transfer.outcome().message());
  control.abandon(left);
  return left;
}

Status attempt(State& state, Control& control, const char* doing, collectives::Buffer& room,
               Attempt& made) {
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
    // Otherwise the others would wait in the transfer for a worker that takes no part.
    made.concerns = Attempt::Concerns::kThisWorker;
    control.abandon(fits);
    return fits;
  }

  Lent memory(lane);
  StateTransfer transfer(state, image, jobs.bytes, room);
  // A mismatch is an error of all members: large entries differ in size, or the donor changed
  // between the two operations, to one with a state of another size. The comparison below finds
  // which.
  const auto transferred = lane.run(transfer, timeout);
  const Status& moved = transferred.status();
  if (!moved.ok() && moved.code() != Code::kMismatch) return moved;

  const Layout entries = training::layout(state);
  std::vector<std::uint64_t> own = summary(state, entries, transfer, made.last);
  Comparison told;
  coordinator::AllgatherOperation compare(
      ConstTensorView{own.data(), own.size(), DType::kI64, {}},
      [&](std::span<const std::byte> bytes, const std::vector<std::size_t>& counts) {
        told.lengths = counts;
        told.all.resize(bytes.size() / sizeof(std::uint64_t));
        if (!bytes.empty()) std::memcpy(told.all.data(), bytes.data(), bytes.size());
      },
      transport::OwnCall::kStateHashes);
  auto done = lane.run(compare, timeout);
  if (!done.ok()) return done.status();
  memory.given_back();
  const StateRefusals refusals = state_refusals(told.all, told.lengths);
  if (refusals.final) {
    if (Status status = judge(refusals, transfer, control, made); !status.ok()) return status;
  }
  made.why = state_difference(told.all, told.lengths, entries);
  if (made.why.empty() && !moved.ok()) made.why = moved.message();
  if (made.why.empty() && refusals.ranks > 0 && !refusals.final) made.why = refusals.text;
  made.agreed = made.why.empty();
  if (!made.agreed) return {};

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
  constexpr std::size_t kGrowth = std::size_t{1} << 20;  // objects may be larger in the job than
                                                         // here
  constexpr std::size_t kPage = 4096;
  collectives::Buffer room;
  room.resize(bytes + kGrowth);
  for (std::size_t at = 0; at < room.size(); at += kPage) room.data()[at] = std::byte{0};
  return room;
}

Status synchronise(State& state, Control& control, const char* doing, collectives::Buffer room) {
  std::string why;
  for (int i = 1; i <= kAttempts; ++i) {
    Attempt made;
    made.last = i == kAttempts;
    if (Status status = attempt(state, control, doing, room, made); !status.ok()) {
      using Concerns = Attempt::Concerns;
      // The workers are set up differently: those that fail first would leave the last one alone.
      const bool set_up = made.concerns == Concerns::kUnknown && !control.synced() &&
                          status.code() == Code::kMismatch;
      if (set_up || made.concerns == Concerns::kJob) control.fail_job(status);
      return status;
    }
    if (made.agreed) return {};
    why = std::move(made.why);
    log::warn("state differs after synchronisation, trying again: {}", why);
  }
  const Status differs(Code::kMismatch, "the state cannot be made the same on all members: " + why);
  // Otherwise the workers that end last would be alone, and train on.
  control.fail_job(differs);
  return differs;
}

}  // namespace elastic::runtime
