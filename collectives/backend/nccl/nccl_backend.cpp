#include "collectives/backend/nccl/nccl_backend.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "collectives/backend/nccl/collectives/work_for.hpp"
#include "collectives/backend/nccl/communicator/bootstrap_exchange.hpp"
#include "collectives/backend/nccl/communicator/communicator_reaper.hpp"
#include "collectives/backend/nccl/communicator/view_communicator.hpp"
#include "collectives/backend/nccl/memory/registrations.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "collectives/backend/nccl/small_allgather.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::collectives::nccl {
namespace {

using transport::OpTag;

/// A rank's vote on the use of NCCL. Each field is 1 or 0; the minimum over the ranks counts.
struct ReadinessVote {
  std::uint8_t wants = 0;    ///< its tensors are on one device, on which this lane has the turn
  std::uint8_t expects = 0;  ///< it wants NCCL now or later: it has a communicator or a device
  std::uint8_t fits = 0;     ///< its communicator is for this device, or there is none
  std::uint8_t distinct_devices = 0;  ///< see ViewCommunicator::Standing
  std::uint8_t alive = 0;             ///< see ViewCommunicator::Standing
  std::uint8_t ready = 0;             ///< see ViewCommunicator::Standing
  std::uint8_t message = 0;           ///< its communicator has a message for the other ranks
  std::uint8_t waits = 0;             ///< it wants NCCL, and NcclServices::waits is set
  std::uint8_t holds_up = 0;          ///< a state transfer may be delayed further (head_start)
  std::uint8_t registered = 0;  ///< its memory for the result is registered with the communicator
};
static_assert(sizeof(ReadinessVote) == 10);

/// Collectives by NCCL for tensors on devices. Steps of an operation:
/// 1. Take the turn on the tensors' device, if it is free.
/// 2. Vote with all ranks whether NCCL performs the operation (`agree`). This also advances the
///    making of the view's communicator, which may take many operations.
/// 3. If so, perform it by NCCL, and exchange whether it succeeded on all ranks (`by_nccl`).
/// 4. Otherwise, or if NCCL failed on a rank, perform it in host memory by the native backend.
///
/// Owned by the thread that runs the lane's operation. Any thread may call `abort`.
class NcclBackend final : public Backend {
 public:
  NcclBackend(ModuleView view, NcclServices services)
      : view_(std::move(view)),
        services_(std::move(services)),
        shared_(services_.communicators->of(
            view_.worker, {view_.generation, view_.mesh->rank(), view_.mesh->size()}, services_)) {}

  Status prepare(std::uint64_t position) override { return view_.native->prepare(position); }
  Status run(std::uint64_t position, const Call& call, Payload& payload) override;
  plan::AllreduceLimits allreduce_limits() const override {
    return {.zero_copy_from = view_.native->allreduce_limits().zero_copy_from};
  }
  Status settle() override { return view_.native->settle(); }
  Status settle_error(std::uint64_t position, const std::vector<int>& ranks) override {
    return view_.native->settle_error(position, ranks);
  }
  Status hand_over(std::uint64_t position, const HandoverPairs& pairs, Parcel& parcel) override {
    return view_.native->hand_over(position, pairs, parcel);
  }
  void abort() noexcept override;
  int rank() const override { return view_.mesh->rank(); }
  int size() const override { return view_.mesh->size(); }
  const char* name() const override { return "nccl"; }

 private:
  Status begin_early(std::uint64_t position, const Call& call);
  Status take_turn(const Call& call, const Payload& payload);
  Result<bool> agree(std::uint64_t position, const Call& call);
  Result<ReadinessVote> meet(std::uint64_t position, const Call& call);
  ReadinessVote own_vote();
  void register_memory();
  Status advance(std::uint64_t position, const ReadinessVote& all);
  Status wait_for_news();
  Status carry_messages(std::uint64_t position);
  Result<std::vector<std::uint64_t>> share_counts(std::uint64_t position, const Call& call);
  Result<ResultOnDevice::HostForm> form_of_result(std::uint64_t position, const Call& call);
  Result<bool> by_nccl(std::uint64_t position, const Call& call, Payload& payload);
  Result<bool> conclude(SmallAllgather& verdict, bool succeeded, const Call& call, DeviceWork& work,
                        ResultOnDevice::HostForm form, Payload& payload);
  Status by_host(std::uint64_t position, const Call& call, Payload& payload);
  Status stop(const DeviceWork& work, const Status& why);
  std::uint8_t next_phase() { return phase_++; }
  bool is_early() const { return held_up_until_ != TimePoint{}; }

  ModuleView view_;
  const NcclServices services_;
  const std::shared_ptr<ViewCommunicator> shared_;
  std::set<Kind> told_;  // kinds of calls whose use of NCCL was logged
  Registrations registrations_;

  // State of the operation.
  std::uint8_t phase_ = OpTag::kNormal;
  std::shared_ptr<SharedDevice> device_;
  std::unique_lock<std::mutex> turn_;           // on device_
  std::shared_ptr<Communicator> communicator_;  // of the latest vote
  std::optional<BootstrapMessage> message_;     // of the latest vote
  TimePoint held_up_until_;                     // end of a state transfer's delay
  std::size_t bytes_ = 0;                       // of the result, if it may be in registered memory
  device::PinnedPool::Block registered_;        // memory for the result
};

Status NcclBackend::run(std::uint64_t position, const Call& call, Payload& payload) {
  phase_ = OpTag::kNormal;
  device_.reset();
  held_up_until_ = {};
  registered_ = {};
  bytes_ = 0;
  if (call.kind == Kind::kTransfer) {
    if (Status begun = begin_early(position, call); !begun.ok()) return begun;
    return by_host(position, call, payload);
  }
  if (!is_for_nccl(call.kind)) return view_.native->run(position, call, payload);
  if (payload.on_device() != nullptr) {
    if (Status turn = take_turn(call, payload); !turn.ok()) return turn;
  }
  std::unique_lock<std::mutex> turn = std::exchange(turn_, {});
  if (!turn.owns_lock()) device_.reset();
  if (device_ && call.kind == Kind::kAllreduce) bytes_ = extent(payload.on_device()->tensors());
  const Result<bool> agreed = agree(position, call);
  if (!agreed.ok()) return agreed.status();
  if (agreed.value()) {
    const Result<bool> done = by_nccl(position, call, payload);
    if (!done.ok() || done.value()) return done.status();
  }
  communicator_.reset();
  registered_ = {};
  if (turn.owns_lock()) turn.unlock();
  return by_host(position, call, payload);
}

/// Before a transfer of state: begins a communicator, which NCCL makes while the state travels. The
/// ranks only have to exchange its id first.
Status NcclBackend::begin_early(std::uint64_t position, const Call& call) {
  device_ = services_.devices->expected();
  held_up_until_ = Clock::now() + services_.head_start;
  const Result<bool> agreed = agree(position, call);
  device_.reset();
  return agreed.status();
}

/// Tries to take the turn on the tensors' device. Does not wait: the lane that has the turn may
/// itself wait for a rank that waits here.
Status NcclBackend::take_turn(const Call& call, const Payload& payload) {
  if (const auto over = services_.reaper->over(); !over.ok()) return over.status();
  const DeviceTensors& given = *payload.on_device();
  const int index = given.device();
  if (index < 0 || !is_for_nccl(call.kind, given.tensors())) return {};
  auto device = services_.devices->open(index);
  if (!device.ok()) {
    log::warn("nccl: {}", device.status().message());
    return {};
  }
  if (!device.value()->mover().takes(given.tensors())) return {};
  device_ = std::move(device).value();
  turn_ = device_->try_turn();
  return {};
}

ReadinessVote NcclBackend::own_vote() {
  ViewCommunicator::Standing standing = shared_->standing();
  using Fit = ViewCommunicator::Fit;
  const Fit fit = device_ ? shared_->fit(*device_) : Fit::kFits;
  const bool wants = device_ && !is_early() && fit != Fit::kOther;
  ReadinessVote vote;
  vote.wants = wants ? 1 : 0;
  vote.expects = standing.communicator || device_ ? 1 : 0;
  vote.fits = fit == Fit::kFits ? 1 : 0;
  vote.distinct_devices = standing.distinct_devices ? 1 : 0;
  vote.alive = standing.alive ? 1 : 0;
  vote.ready = standing.ready ? 1 : 0;
  vote.message = standing.message ? 1 : 0;
  vote.waits = wants && services_.waits ? 1 : 0;
  vote.holds_up = standing.rounds == 0 && Clock::now() < held_up_until_ ? 1 : 0;
  communicator_ = std::move(standing.communicator);
  message_ = std::move(standing.message);
  if (wants && standing.ready) register_memory();
  vote.registered = registered_.data() != nullptr ? 1 : 0;
  return vote;
}

/// Called before the ranks vote, because registered memory is used only if all ranks have it.
void NcclBackend::register_memory() {
  if (registered_.data() != nullptr) return;
  registered_ = registrations_.take(communicator_, *device_, view_.lane, bytes_,
                                    Clock::now() + services_.operation);
}

/// One vote: a minimum over all ranks' votes. The first of an operation also compares the calls.
Result<ReadinessVote> NcclBackend::meet(std::uint64_t position, const Call& call) {
  Call gate;
  gate.kind = Kind::kAllreduce;
  gate.redop = ReduceOp::kMin;
  gate.sections = {{DType::kU8, sizeof(ReadinessVote), 0}};
  gate.fingerprint = call.fingerprint;
  gate.error = call.error;
  gate.phase = phase_;
  phase_ = std::max<std::uint8_t>(static_cast<std::uint8_t>(phase_ + 1), OpTag::kLater);
  ReadinessVote vote = own_vote();
  Payload said;
  said.data.resize(sizeof vote);
  std::memcpy(said.data.data(), &vote, sizeof vote);
  if (Status met = view_.native->run(position, gate, said); !met.ok()) return met;
  std::memcpy(&vote, said.data.data(), sizeof vote);
  return vote;
}

/// Decides, the same on all ranks, whether NCCL performs this operation. The ranks vote until the
/// votes decide it; between votes they carry messages of the communicators in the making.
Result<bool> NcclBackend::agree(std::uint64_t position, const Call& call) {
  for (;;) {
    const Result<ReadinessVote> met = meet(position, call);
    if (!met.ok()) return met.status();
    const ReadinessVote& all = met.value();
    if (all.wants == 1 && all.fits == 0) {
      shared_->begin_anew();  // the tensors are not on the expected device
      continue;
    }
    if (all.wants == 1 && all.distinct_devices == 0) return shared_->shared_device_error();
    if (all.alive == 0) {
      if (Status gone = shared_->give_up({}); !gone.ok()) return gone;
      return false;
    }
    if (all.wants == 1 && all.ready == 1) {
      shared_->use();
      if (all.registered == 0) registered_ = {};
      return true;
    }
    if (all.expects == 0) return false;
    if (Status status = advance(position, all); !status.ok()) return status;
    if (all.waits == 0 && all.holds_up == 0) return false;
    if (all.message == 1) continue;
    if (Status news = wait_for_news(); !news.ok()) return news;
  }
}

/// Takes the next step towards a communicator, if one is possible now.
Status NcclBackend::advance(std::uint64_t position, const ReadinessVote& all) {
  using Device = ViewCommunicator::Device;
  if (all.message == 1) return carry_messages(position);
  if (!device_) return {};
  return shared_->begin(device_, is_early() ? Device::kGuessed : Device::kKnown);
}

/// Waits for news: a communicator can be begun, has a message for other ranks, is ready, or dead.
Status NcclBackend::wait_for_news() {
  for (;;) {
    if (is_early() && Clock::now() >= held_up_until_) return {};
    const Result<bool> news = shared_->wait_for_news();
    if (!news.ok() || news.value()) return news.status();
    if (Status status = view_.mesh->progress_and_look(); !status.ok()) {
      view_.mesh->abandon();
      return status;
    }
  }
}

/// Exchanges one round of the communicators' messages between the ranks.
Status NcclBackend::carry_messages(std::uint64_t position) {
  constexpr std::size_t kHead = 3;  // round and size of the text
  std::array<std::byte, kHead + BootstrapExchange::kMostBytes> frame{};
  const std::string& mine = message_->text;
  frame[0] = static_cast<std::byte>(message_->round);
  frame[1] = static_cast<std::byte>(mine.size() & 0xffU);
  frame[2] = static_cast<std::byte>(mine.size() >> 8U);
  std::memcpy(frame.data() + kHead, mine.data(), mine.size());
  SmallAllgather round(*view_.mesh, {view_.generation, position, next_phase()}, frame.size());
  round.send(frame);
  if (Status status = round.finish(); !status.ok()) return status;
  std::vector<std::string> messages;
  for (int each = 0; each < size(); ++each) {
    const auto theirs = round.of(each);
    // Another lane has already delivered this round on some ranks.
    if (theirs[0] != frame[0]) return {};
    const std::size_t bytes =
        std::min(BootstrapExchange::kMostBytes, std::to_integer<std::size_t>(theirs[1]) |
                                                    std::to_integer<std::size_t>(theirs[2]) << 8U);
    messages.emplace_back(reinterpret_cast<const char*>(theirs.data() + kHead), bytes);
  }
  shared_->deliver(message_->round, std::move(messages));
  return {};
}

/// For an allgather: exchanges the number of elements of each rank.
Result<std::vector<std::uint64_t>> NcclBackend::share_counts(std::uint64_t position,
                                                             const Call& call) {
  const Section& block = call.sections.front();
  const std::uint64_t mine = block.count;
  SmallAllgather round(*view_.mesh, {view_.generation, position, next_phase()}, sizeof mine);
  round.send(std::as_bytes(std::span(&mine, 1)));
  if (Status status = round.finish(); !status.ok()) return status;
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(size()));
  for (int each = 0; each < size(); ++each) {
    std::memcpy(&counts[static_cast<std::size_t>(each)], round.of(each).data(), sizeof mine);
  }
  if (const auto total = gathered_bytes(counts, size_of(block.dtype)); !total.ok()) {
    return total.status();
  }
  return counts;
}

/// The form that the result would have in host memory, with the number of elements of each rank.
Result<ResultOnDevice::HostForm> NcclBackend::form_of_result(std::uint64_t position,
                                                             const Call& call) {
  if (call.kind == Kind::kAllgather) {
    auto shared = share_counts(position, call);
    if (!shared.ok()) return shared.status();
    return ResultOnDevice::HostForm(Blocks{std::move(shared).value()});
  }
  if (call.kind == Kind::kReduceScatter) {
    return ResultOnDevice::HostForm(
        Blocks{plan::parts_of(call.sections.front().count, static_cast<std::size_t>(size()))});
  }
  return ResultOnDevice::HostForm();
}

/// Performs the call by NCCL, then the ranks tell each other whether they succeeded. False: NCCL
/// has failed on some rank, and nothing of the operation is left on this rank's device.
Result<bool> NcclBackend::by_nccl(std::uint64_t position, const Call& call, Payload& payload) {
  auto form = form_of_result(position, call);
  if (!form.ok()) return form.status();
  const auto* const blocks = std::get_if<Blocks>(&form.value());
  SmallAllgather verdict(*view_.mesh, {view_.generation, position, next_phase()}, 1);
  const std::unique_ptr<DeviceWork> work = work_for(
      {*communicator_, device_, view_.lane, std::exchange(registered_, {})}, call,
      payload.on_device()->tensors(),
      blocks == nullptr ? std::span<const std::uint64_t>() : blocks->counts, rank(), size());
  Status links;
  const auto meanwhile = [&]() -> Status {
    links = view_.mesh->progress_and_look();
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
    // If `abort` ended it, the view is to change, and there is no verdict to exchange.
    if (links.ok()) links = view_.mesh->progress_and_look();
  }
  if (!links.ok()) return links;
  return conclude(verdict, own.ok(), call, *work, std::move(form).value(), payload);
}

/// Exchanges whether the ranks have succeeded. The result is that of `by_nccl`.
Result<bool> NcclBackend::conclude(SmallAllgather& verdict, bool succeeded, const Call& call,
                                   DeviceWork& work, ResultOnDevice::HostForm form,
                                   Payload& payload) {
  const std::byte word{succeeded ? std::uint8_t{1} : std::uint8_t{0}};
  verdict.send({&word, 1});
  if (Status heard = verdict.finish(); !heard.ok()) {
    // NCCL may have succeeded on this rank and failed on others.
    const Status stopped = stop(work, heard);
    if (succeeded && call.kind == Kind::kReduceScatter) {
      // Other ranks may know that all have succeeded, and no other rank has this rank's part.
      std::get<Blocks>(form).own_block_complete = true;
      payload.form = ResultOnDevice{work.take_result(), std::move(form)};
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
    log::info("nccl, generation {}: {} of tensors on devices go by NCCL from now on",
              view_.generation, plural(call.kind));
  }
  payload.form = ResultOnDevice{work.take_result(), std::move(form)};
  return true;
}

/// Ends all work of the operation on the device. After a failure this worker has to leave.
Status NcclBackend::stop(const DeviceWork& work, const Status& why) {
  if (Status gone = shared_->give_up(why); !gone.ok()) return gone;
  work.wait_for_copies();
  return {};
}

Status NcclBackend::by_host(std::uint64_t position, const Call& call, Payload& payload) {
  if (DeviceTensors* const tensors = payload.on_device()) {
    payload.form = Packed{};
    if (Status status = tensors->to_host(payload); !status.ok()) return status;
  }
  Call here = call;
  here.phase = next_phase();
  return view_.native->run(position, here, payload);
}

void NcclBackend::abort() noexcept {
  view_.native->abort();
  shared_->abort();
}

}  // namespace

std::unique_ptr<Backend> make_nccl_backend(ModuleView view, NcclServices services) {
  return std::make_unique<NcclBackend>(std::move(view), std::move(services));
}

}  // namespace elastic::collectives::nccl
