#include "runtime/synchronisation.hpp"

#include <algorithm>
#include <cstring>
#include <span>
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
/// Far longer than a server takes that is there.
constexpr Milliseconds kVerdict{10000};

/// Data that a member brings to the synchronisation.
struct Header {
  std::uint64_t bytes = 0;   ///< of the image of its state
  std::uint64_t layout = 0;  ///< hash of its layout
};

/// The headers of all members of a view.
struct Headers {
  std::vector<Header> by_rank;
  std::size_t donor = 0;  ///< rank that gives the state
  Roster roster;          ///< the members of that view

  /// The first rank with another layout than rank 0; 0 if all are equal.
  std::size_t different_rank() const {
    const auto other = std::find_if(by_rank.begin(), by_rank.end(), [this](const Header& header) {
      return header.layout != by_rank.front().layout;
    });
    return other == by_rank.end() ? 0 : static_cast<std::size_t>(other - by_rank.begin());
  }
};

/// Gathers them.
class HeaderOperation : public coordinator::AllgatherOperation {
 public:
  HeaderOperation(const Header& mine, Headers& all, const char* doing)
      : AllgatherOperation(
            ConstTensorView{&mine, sizeof(Header) / sizeof(std::uint64_t), DType::kU64, {}},
            [&all](std::span<const std::byte> bytes, const std::vector<std::size_t>& /*counts*/) {
              all.by_rank.resize(bytes.size() / sizeof(Header));
              if (!bytes.empty()) std::memcpy(all.by_rank.data(), bytes.data(), bytes.size());
            },
            transport::OwnCall::kStateSize),
        all_(all),
        doing_(doing) {}
  collectives::Call call(const Members& members) override {
    collectives::Call call = AllgatherOperation::call(members);
    call.error = "rank " + std::to_string(members.rank) + " " + doing_;
    return call;
  }
  void unpack(const Members& members, const collectives::Payload& payload) override {
    AllgatherOperation::unpack(members, payload);
    all_.donor = static_cast<std::size_t>(members.first_synced());
    all_.roster = roster_of(members, members.generation);
  }

 private:
  Headers& all_;
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
  Comparison(std::span<const std::byte> bytes, const std::vector<std::size_t>& counts)
      : all(bytes.size() / sizeof(std::uint64_t)), lengths(counts) {
    if (!bytes.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
    refusals = state_refusals(all, lengths);
  }

  /// Why the members that remain have not the same state: empty if they have. `moved` is the
  /// outcome of the transfer.
  std::string difference(const Layout& entries, const Status& moved) const {
    if (std::string why = state_difference(all, lengths, entries); !why.empty()) return why;
    if (!moved.ok()) return moved.message();
    return refusals.ranks > 0 && !refusals.final ? refusals.text : "";
  }

  std::vector<std::uint64_t> all;
  std::vector<std::size_t> lengths;
  StateRefusals refusals;
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
  control.leave_with_error(left);
  return left;
}

/// The reason why members with different layouts cannot train together. The server compares the
/// layouts, too, and fails the job with the difference in words, which this waits for; if it is
/// away, the numbers of the ranks have to do.
Status different_layouts(std::size_t rank, Control& control, Attempt& made) {
  if (Status verdict = control.wait_until_ended(kVerdict); !verdict.ok()) return verdict;
  made.concerns = Attempt::Concerns::kJob;
  return Status(Code::kRefused,
                "the states or the options of ranks 0 and " + std::to_string(rank) +
                    " differ; add the same entries, in the same order, on all workers");
}

Status attempt(State& state, const Synchronisation& how, Control& control,
               collectives::Buffer& room, Attempt& made) {
  coordinator::Lane& lane = control.lane(kUnnamedLane);
  const Milliseconds timeout = control.options().view_timeout;

  const std::uint64_t brought = state.commits();
  training::Image image = training::serialize(state);
  const Header mine{image.size(), how.layout};
  Headers all;
  HeaderOperation header(mine, all, how.doing);
  if (auto done = lane.run(header, timeout); !done.ok()) return done.status();
  if (const std::size_t rank = all.different_rank(); rank != 0) {
    return different_layouts(rank, control, made);
  }
  const Header& jobs = all.by_rank[all.donor];
  if (!can_exist(jobs.bytes, 1)) {
    return Status(Code::kProtocol, "the member that gives the state says that its image has " +
                                       std::to_string(jobs.bytes) +
                                       " bytes, more than any memory has");
  }

  if (Status fits = training::check_image_bytes(state, jobs.bytes); !fits.ok()) {
    // Otherwise the others would wait in the transfer for a worker that takes no part.
    made.concerns = Attempt::Concerns::kThisWorker;
    control.leave_with_error(fits);
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
  StateRefusals refusals;
  coordinator::AllgatherOperation compare(
      ConstTensorView{own.data(), own.size(), DType::kI64, {}},
      [&](std::span<const std::byte> bytes, const std::vector<std::size_t>& counts) {
        const Comparison told(bytes, counts);
        refusals = told.refusals;
        made.why = told.difference(entries, moved);
        made.agreed = made.why.empty();
        const bool refused = refusals.final && !(transfer.had_state() && transfer.outcome().ok());
        if (!made.agreed || refused) return;
        // Now, while this thread has the lane: the server asks each member whether it has the state
        // when another leaves, perhaps at once, and the answer waits for the lane.
        control.gate().set_commits(state.commits());
        control.set_synced();
      },
      transport::OwnCall::kStateHashes);
  auto done = lane.run(compare, timeout);
  if (!done.ok()) return done.status();
  memory.given_back();
  if (refusals.final) {
    if (Status status = judge(refusals, transfer, control, made); !status.ok()) return status;
  }
  if (!made.agreed) return {};

  if (brought > state.commits()) {
    log::warn(
        "this worker came with a state of {} steps, and gave it up for the job's, which has {}; a "
        "checkpoint is loaded where rank 0 starts",
        brought, state.commits());
  }
  control.set_roster(std::move(all.roster));
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

Status synchronise(State& state, const Synchronisation& how, Control& control,
                   collectives::Buffer room) {
  std::string why;
  for (int i = 1; i <= kAttempts; ++i) {
    Attempt made;
    made.last = i == kAttempts;
    if (Status status = attempt(state, how, control, room, made); !status.ok()) {
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
  const Status differs(Code::kMismatch,
                       "the state cannot be made the same on all members: " + why +
                           "; each member has trained with a value of its own: make it the same on "
                           "all before State::commit, by an allreduce");
  // Otherwise the workers that end last would be alone, and train on.
  control.fail_job(differs);
  return differs;
}

}  // namespace elastic::runtime
