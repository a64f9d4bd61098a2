#include "collectives/backend/nccl/nccl_backend.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "collectives/backend/nccl/communicator.hpp"
#include "collectives/backend/nccl/letter_box.hpp"
#include "collectives/backend/nccl/registrations.hpp"
#include "collectives/backend/nccl/round.hpp"
#include "collectives/backend/nccl/work_for.hpp"

namespace elastic::collectives::nccl {
namespace {

using transport::OpTag;

/// What a rank says when the ranks meet; each is 1 or 0, and all ranks go by the least.
struct Say {
  std::uint8_t wants = 0;       ///< its tensors lie on one device, on which it is this lane's turn
  std::uint8_t alive = 0;       ///< NCCL has not failed in this view
  std::uint8_t ready = 0;       ///< the communicator is
  std::uint8_t letter = 0;      ///< the communicator has one for the others
  std::uint8_t waits = 0;       ///< NcclServices::waits
  std::uint8_t registered = 0;  ///< its memory for the result is, with the communicator
};
static_assert(sizeof(Say) == 6);

bool is_dead(Phase phase) {
  return phase == Phase::kDying || phase == Phase::kAborting || phase == Phase::kEnded ||
         phase == Phase::kStuck;
}

/// Owned by the thread that runs the lane's operation, but for `abort`.
class NcclBackend final : public Backend {
 public:
  NcclBackend(ModuleView view, NcclServices services)
      : view_(std::move(view)), services_(std::move(services)) {}
  ~NcclBackend() override {
    if (communicator_) services_.burials->add(std::move(communicator_));
  }

  Status prepare(std::uint64_t position) override { return view_.native->prepare(position); }
  Status run(std::uint64_t position, const Call& call, Payload& payload) override;
  std::size_t direct_bytes() const override { return view_.native->direct_bytes(); }
  Status settle() override { return view_.native->settle(); }
  Status hand_over(std::uint64_t position, const Handover& handover, Parcel& parcel) override {
    return view_.native->hand_over(position, handover, parcel);
  }
  void abort() noexcept override;
  int rank() const override { return view_.mesh->rank(); }
  int size() const override { return view_.mesh->size(); }
  const char* name() const override { return "nccl"; }

 private:
  Status take_turn(const Payload& payload);
  Result<bool> agree(std::uint64_t position, const Call& call);
  Result<Say> meet(std::uint64_t position, const Call& call);
  device::PinnedPool::Block registered_memory(const Call& call, const Payload& payload);
  Say own_say() const;
  Status look_at_links();
  Status wait_for_news();
  void prepare_communicator();
  Status carry_letters(std::uint64_t position);
  Status share_counts(std::uint64_t position, const Call& call, Payload& payload);
  Result<bool> by_nccl(std::uint64_t position, const Call& call, Payload& payload);
  Result<bool> conclude(Round& verdict, bool succeeded, const Call& call, DeviceWork& work,
                        Payload& payload);
  Status by_host(std::uint64_t position, const Call& call, Payload& payload);
  Status stop(const DeviceWork& work, const Status& why);
  Status give_up(const Status& why);
  std::uint8_t next_phase() { return phase_++; }

  ModuleView view_;
  const NcclServices services_;
  /// Its own lock, because `abort` may come at any time.
  std::mutex mutex_;
  std::unique_ptr<Communicator> communicator_;
  bool aborted_ = false;
  std::shared_ptr<LetterBox> letters_;
  std::shared_ptr<SharedDevice> made_on_;  // the device of the communicator
  bool off_ = false;                       // NCCL has failed in this view
  Registrations registrations_;            // with the communicator
  std::set<Kind> told_;                    // of which NCCL is used

  // Of the operation.
  std::uint8_t phase_ = OpTag::kNormal;
  unsigned looks_ = 0;
  std::shared_ptr<SharedDevice> device_;
  std::unique_lock<std::mutex> turn_;  // on it
  device::PinnedPool::Block registered_;
};

Status NcclBackend::run(std::uint64_t position, const Call& call, Payload& payload) {
  if (!is_for_nccl(call.kind)) return view_.native->run(position, call, payload);
  phase_ = OpTag::kNormal;
  if (payload.on_device != nullptr) {
    if (Status turn = take_turn(payload); !turn.ok()) return turn;
  }
  std::unique_lock<std::mutex> turn = std::exchange(turn_, {});
  if (!turn.owns_lock()) device_.reset();
  registered_ = registered_memory(call, payload);
  const Result<bool> agreed = agree(position, call);
  if (!agreed.ok()) return agreed.status();
  if (agreed.value()) {
    const Result<bool> done = by_nccl(position, call, payload);
    if (!done.ok() || done.value()) return done.status();
  }
  registered_ = {};
  if (turn.owns_lock()) turn.unlock();
  return by_host(position, call, payload);
}

/// On the device of the tensors. Not waited for: whoever has it may be waiting for this rank.
Status NcclBackend::take_turn(const Payload& payload) {
  device_.reset();
  if (const auto over = services_.burials->over(); !over.ok()) return over.status();
  const int index = payload.on_device->device();
  if (index < 0 || off_) return {};
  auto device = services_.devices->open(index);
  if (!device.ok()) {
    log::get().warn("nccl: {}", device.status().message());
    return {};
  }
  if (!device.value()->mover().takes(payload.on_device->tensors())) return {};
  device_ = std::move(device).value();
  turn_ = device_->try_turn();
  return {};
}

/// Before the ranks meet, as all of them have it or none uses it.
device::PinnedPool::Block NcclBackend::registered_memory(const Call& call, const Payload& payload) {
  if (call.kind != Kind::kAllreduce || !device_ || device_ != made_on_ || !communicator_ ||
      communicator_->phase() != Phase::kReady) {
    return {};
  }
  return registrations_.take(*communicator_, *device_, view_.lane,
                             extent(payload.on_device->tensors()),
                             Clock::now() + services_.operation);
}

Say NcclBackend::own_say() const {
  const std::optional<Phase> phase =
      communicator_ ? std::optional(communicator_->phase()) : std::nullopt;
  Say say;
  say.wants = device_ && (!made_on_ || made_on_ == device_) ? 1 : 0;
  say.alive = !off_ && (!phase || !is_dead(*phase)) ? 1 : 0;
  say.ready = phase == Phase::kReady ? 1 : 0;
  say.letter = letters_ && letters_->waiting() ? 1 : 0;
  say.waits = services_.waits ? 1 : 0;
  say.registered = registered_.data() != nullptr ? 1 : 0;
  return say;
}

/// The ranks compare what they call the first time, and go by what the least of them can.
Result<Say> NcclBackend::meet(std::uint64_t position, const Call& call) {
  Call gate;
  gate.kind = Kind::kAllreduce;
  gate.redop = ReduceOp::kMin;
  gate.sections = {{DType::kU8, sizeof(Say), 0}};
  gate.fingerprint = call.fingerprint;
  gate.phase = phase_;
  phase_ = std::max<std::uint8_t>(static_cast<std::uint8_t>(phase_ + 1), OpTag::kLater);
  Say say = own_say();
  Payload said;
  said.data.resize(sizeof say);
  std::memcpy(said.data.data(), &say, sizeof say);
  if (Status met = view_.native->run(position, gate, said); !met.ok()) return met;
  std::memcpy(&say, said.data.data(), sizeof say);
  return say;
}

/// Whether this operation is NCCL's. What has to be known for that is exchanged on the way.
Result<bool> NcclBackend::agree(std::uint64_t position, const Call& call) {
  for (;;) {
    const Result<Say> met = meet(position, call);
    if (!met.ok()) return met.status();
    const Say& all = met.value();
    if (all.alive == 0) {
      if (Status gone = give_up({}); !gone.ok()) return gone;
      return false;
    }
    if (all.wants == 0) return false;
    if (all.ready == 1) {
      if (all.registered == 0) registered_ = {};
      return true;
    }
    if (!communicator_) {
      // NCCL may still be with the one before.
      const Result<bool> over = services_.burials->over();
      if (!over.ok()) return over.status();
      if (over.value()) prepare_communicator();
    } else if (all.letter == 1) {
      if (Status carried = carry_letters(position); !carried.ok()) return carried;
    }
    if (all.waits == 0) return false;
    if (Status news = wait_for_news(); !news.ok()) return news;
  }
}

void NcclBackend::prepare_communicator() {
  made_on_ = device_;
  letters_ = std::make_shared<LetterBox>();
  CommunicatorPlan plan;
  plan.view = {view_.generation, rank(), size()};
  plan.exchange = exchange_by(letters_);
  plan.deadlines = services_.deadlines;
  // Also so that what is registered with it stays until it has ended.
  plan.choose_device = [device = device_] { return device->cuda()->select(); };
  const std::lock_guard<std::mutex> lock(mutex_);
  communicator_ = Communicator::prepare(services_.library, std::move(plan));
  if (aborted_) communicator_->abort();
}

/// Who does not sleep on the links has to ask whether peers are there. None can be done with the
/// operation before this rank is.
Status NcclBackend::look_at_links() {
  constexpr unsigned kLooksPerPeer = 64;
  bool moved = false;
  if (Status status = view_.mesh->progress(moved); !status.ok()) return status;
  if (looks_++ % kLooksPerPeer != 0) return {};
  for (int each = 0; each < size(); ++each) {
    if (each == rank() || !view_.mesh->link(each).hung_up()) continue;
    return Status(Code::kPeerLost,
                  view_.mesh->link(each).peer_name() + ": the connection is closed", each,
                  view_.generation);
  }
  return {};
}

/// Until a communicator can be begun, or there is one that has something to tell the others, or is
/// ready or dead.
Status NcclBackend::wait_for_news() {
  constexpr Duration kPause = std::chrono::milliseconds(1);
  for (;;) {
    if (communicator_) {
      const Phase phase = communicator_->phase();
      if (phase == Phase::kReady || is_dead(phase) || letters_->waiting()) return {};
    } else if (const auto over = services_.burials->over(); !over.ok() || over.value()) {
      return over.status();
    }
    if (Status status = look_at_links(); !status.ok()) {
      view_.mesh->abandon();
      return status;
    }
    if (communicator_) {
      // Returns early where it can, and sees to deadlines.
      (void)communicator_->ready(Clock::now() + kPause);
    } else {
      std::this_thread::sleep_for(kPause);
    }
  }
}

Status NcclBackend::carry_letters(std::uint64_t position) {
  constexpr std::size_t kBytes = 2 + LetterBox::kMostBytes;
  const std::string mine = letters_->waiting().value_or("");
  std::array<std::byte, kBytes> frame{};
  frame[0] = static_cast<std::byte>(mine.size() & 0xffU);
  frame[1] = static_cast<std::byte>(mine.size() >> 8U);
  std::memcpy(frame.data() + 2, mine.data(), mine.size());
  Round round(*view_.mesh, {view_.generation, position, next_phase()}, kBytes);
  round.send(frame);
  if (Status status = round.finish(); !status.ok()) return status;
  std::vector<std::string> letters;
  for (int each = 0; each < size(); ++each) {
    const auto theirs = round.of(each);
    const std::size_t bytes =
        std::min(LetterBox::kMostBytes, std::to_integer<std::size_t>(theirs[0]) |
                                            std::to_integer<std::size_t>(theirs[1]) << 8U);
    letters.emplace_back(reinterpret_cast<const char*>(theirs.data() + 2), bytes);
  }
  letters_->deliver(std::move(letters));
  return {};
}

/// Of an allgather: how many elements each rank has.
Status NcclBackend::share_counts(std::uint64_t position, const Call& call, Payload& payload) {
  const Section& block = call.sections.front();
  const std::uint64_t mine = block.count;
  Round round(*view_.mesh, {view_.generation, position, next_phase()}, sizeof mine);
  round.send(std::as_bytes(std::span(&mine, 1)));
  if (Status status = round.finish(); !status.ok()) return status;
  payload.counts.resize(static_cast<std::size_t>(size()));
  for (int each = 0; each < size(); ++each) {
    std::memcpy(&payload.counts[static_cast<std::size_t>(each)], round.of(each).data(),
                sizeof mine);
  }
  const auto total = gathered_bytes(payload.counts, size_of(block.dtype));
  return total.ok() ? Status() : total.status();
}

/// False: NCCL has failed on some rank, and holds nothing of the operation any more on this one.
Result<bool> NcclBackend::by_nccl(std::uint64_t position, const Call& call, Payload& payload) {
  if (call.kind == Kind::kAllgather) {
    if (Status shared = share_counts(position, call, payload); !shared.ok()) return shared;
  }
  Round verdict(*view_.mesh, {view_.generation, position, next_phase()}, 1);
  const std::unique_ptr<DeviceWork> work =
      work_for({*communicator_, device_, view_.lane, std::exchange(registered_, {})}, call, payload,
               rank(), size());
  Status links;
  const auto meanwhile = [&]() -> Status {
    links = look_at_links();
    if (!links.ok()) return links;
    for (int each = 0; each < size(); ++each) {
      if (each == rank() || !verdict.has_come(each) || verdict.of(each)[0] != std::byte{0})
        continue;
      return Status(Code::kPeerLost, "NCCL has failed on rank " + std::to_string(each), each);
    }
    return {};
  };
  const Status own = work->run(services_.operation, meanwhile);
  if (!own.ok()) {
    if (Status stopped = stop(*work, own); !stopped.ok()) return stopped;
  }
  if (!links.ok()) return links;
  return conclude(verdict, own.ok(), call, *work, payload);
}

/// The ranks tell each other whether they have succeeded. Otherwise as `by_nccl`.
Result<bool> NcclBackend::conclude(Round& verdict, bool succeeded, const Call& call,
                                   DeviceWork& work, Payload& payload) {
  const std::byte word{succeeded ? std::uint8_t{1} : std::uint8_t{0}};
  verdict.send({&word, 1});
  if (Status heard = verdict.finish(); !heard.ok()) {
    // What NCCL has done here it may not have done elsewhere.
    const Status stopped = stop(work, heard);
    if (succeeded && call.kind == Kind::kReduceScatter) {
      // If others have heard that all have succeeded, nobody else has this rank's part.
      payload.device_result = work.take_result();
      payload.in_hand = true;
    }
    return stopped.ok() ? heard : stopped;
  }
  bool all = true;
  for (int each = 0; each < size(); ++each) all = all && verdict.of(each)[0] != std::byte{0};
  if (!all) {
    Status stopped = stop(work, Status(Code::kPeerLost, "NCCL has failed on another rank"));
    if (!stopped.ok()) return stopped;
    return false;
  }
  if (told_.insert(call.kind).second) {
    log::get().info("nccl, generation {}: {} of tensors on devices go by NCCL from now on",
                    view_.generation, plural(call.kind));
  }
  payload.device_result = work.take_result();
  return true;
}

/// After this nothing of the operation is under way on the device, or this worker has to leave.
Status NcclBackend::stop(const DeviceWork& work, const Status& why) {
  if (Status gone = give_up(why); !gone.ok()) return gone;
  work.wait_for_copies();
  return {};
}

/// NCCL is not used any more in this view, and lets go of what it has of the device. The failure,
/// where it does not: then this worker has to leave.
Status NcclBackend::give_up(const Status& why) {
  if (std::exchange(off_, true)) return {};
  if (!communicator_) return {};
  const Status first = why.ok() ? communicator_->ready(Clock::now()) : why;
  if (first.code() != Code::kAborted) {
    log::get().warn(
        "nccl, generation {}: NCCL cannot be used; tensors on devices go through host memory until "
        "the workers change: {}{}",
        view_.generation, first.message(),
        first.code() == Code::kUnavailable
            ? ". Each rank needs a device of its own (elastic::local_rank); for a test ranks can "
              "share one if each has another NCCL_HOSTID"
            : "");
  }
  communicator_->abort();
  Status ended = communicator_->ended(TimePoint::max());
  return ended.ok() ? ended : ended.within("NCCL");
}

Status NcclBackend::by_host(std::uint64_t position, const Call& call, Payload& payload) {
  if (payload.on_device != nullptr) {
    if (Status status = payload.on_device->to_host(payload); !status.ok()) return status;
  }
  Call here = call;
  here.phase = next_phase();
  return view_.native->run(position, here, payload);
}

void NcclBackend::abort() noexcept {
  view_.native->abort();
  const std::lock_guard<std::mutex> lock(mutex_);
  aborted_ = true;
  if (communicator_) communicator_->abort();
}

}  // namespace

std::unique_ptr<Backend> make_nccl_backend(ModuleView view, NcclServices services) {
  return std::make_unique<NcclBackend>(std::move(view), std::move(services));
}

}  // namespace elastic::collectives::nccl
