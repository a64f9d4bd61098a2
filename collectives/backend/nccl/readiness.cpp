#include "collectives/backend/nccl/readiness.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "collectives/backend/nccl/communicator/bootstrap_exchange.hpp"
#include "collectives/backend/nccl/communicator/view_communicators.hpp"

namespace elastic::collectives::nccl {

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
  std::uint8_t has_memory = 0;        ///< it has the memory for its work
  std::uint8_t registered = 0;  ///< its memory for the result is registered with the communicator
  std::uint8_t plain = 0;       ///< its memory for the result is not registered
  std::uint8_t can_begin = 0;   ///< see ViewCommunicator::can_begin
};
static_assert(sizeof(ReadinessVote) == 13);

Status allgather(const ModuleView& view, LaneOperation& operation, Payload& block) {
  Call call;
  call.kind = Kind::kAllgather;
  call.sections = {{DType::kU8, block.data.size(), 0}};
  call.fingerprint = operation.call.fingerprint;
  call.error = operation.call.error;
  call.phase = operation.next_phase();
  return view.native->run(operation.position, call, block);
}

Readiness::Readiness(const ModuleView& view, const NcclServices& services, ViewCommunicator& shared,
                     Registrations& registrations, OwnTensors own)
    : view_(view),
      services_(services),
      shared_(shared),
      registrations_(registrations),
      own_(std::move(own)) {}

Result<std::shared_ptr<Communicator>> Readiness::agree(LaneOperation& operation) {
  const std::shared_ptr<Communicator> through_host;
  for (;;) {
    const Result<ReadinessVote> met = meet(operation);
    if (!met.ok()) return met.status();
    const ReadinessVote& all = met.value();
    if (all.wants == 1 && all.fits == 0) {
      shared_.begin_anew();  // the tensors are not on the expected device
      continue;
    }
    if (all.wants == 1 && all.distinct_devices == 0) return shared_.shared_device_error();
    if (all.alive == 0) {
      if (Status gone = shared_.give_up({}); !gone.ok()) return gone;
      return through_host;
    }
    if (all.wants == 1 && all.ready == 1) {
      if (all.registered == 0 && all.plain == 0) {
        stop_registering();
        continue;
      }
      if (all.has_memory == 0) return through_host;
      shared_.use();
      return communicator_;
    }
    if (all.expects == 0) return through_host;
    if (Status status = advance(operation, all); !status.ok()) return status;
    if (all.waits == 0 && all.holds_up == 0) return through_host;
    if (all.message == 1) continue;
    if (Status news = wait_for_news(); !news.ok()) return news;
  }
}

/// One vote: a minimum over all ranks' votes. The first of an operation also compares the calls.
Result<ReadinessVote> Readiness::meet(LaneOperation& operation) {
  Call gate;
  gate.kind = Kind::kAllreduce;
  gate.redop = ReduceOp::kMin;
  gate.sections = {{DType::kU8, sizeof(ReadinessVote), 0}};
  gate.fingerprint = operation.call.fingerprint;
  gate.error = operation.call.error;
  gate.phase = operation.next_phase();
  ReadinessVote vote = own_vote();
  Payload said;
  said.data.resize(sizeof vote);
  std::memcpy(said.data.data(), &vote, sizeof vote);
  if (Status met = view_.native->run(operation.position, gate, said); !met.ok()) return met;
  std::memcpy(&vote, said.data.data(), sizeof vote);
  return vote;
}

ReadinessVote Readiness::own_vote() {
  ViewCommunicator::Standing standing = shared_.standing();
  using Fit = ViewCommunicator::Fit;
  const Fit fit = own_.device ? shared_.fit(*own_.device) : Fit::kFits;
  const bool wants = own_.device && !own_.are_early() && fit != Fit::kOther;
  ReadinessVote vote;
  vote.wants = wants ? 1 : 0;
  vote.expects = standing.communicator || own_.device ? 1 : 0;
  vote.fits = fit == Fit::kFits ? 1 : 0;
  vote.distinct_devices = standing.distinct_devices ? 1 : 0;
  vote.alive = standing.alive ? 1 : 0;
  vote.ready = standing.ready ? 1 : 0;
  vote.message = standing.message ? 1 : 0;
  vote.waits = wants && services_.waits ? 1 : 0;
  vote.holds_up = standing.rounds == 0 && Clock::now() < own_.held_up_until ? 1 : 0;
  vote.can_begin = !own_.device || shared_.can_begin(*own_.device) ? 1 : 0;
  communicator_ = std::move(standing.communicator);
  message_ = std::move(standing.message);
  if (wants && standing.ready) {
    vote.has_memory = take_memory().ok() ? 1 : 0;
    vote.registered = registered_ ? 1 : 0;
    vote.plain = registered_ ? 0 : 1;
  }
  return vote;
}

/// Called before the ranks vote: a rank without memory can still vote against NCCL, which then
/// stays ready for the next operation. Registered memory is used only if all ranks have it.
Status Readiness::take_memory() {
  if (prepared_for_ == communicator_) return {};
  // The call of NCCL chooses the device, in a thread that may be the program's.
  const device::CurrentContext here = own_.device->cuda()->enter();
  auto registered = registrations_.take(communicator_, *own_.device, view_.lane, own_.bytes,
                                        Clock::now() + services_.operation);
  registered_ = !registered.ok() || registered.value().data() != nullptr;
  Status status = registered.status();
  if (status.ok() && own_.prepare) {
    status = own_.prepare(communicator_, std::move(registered).value());
  }
  if (status.ok()) prepared_for_ = communicator_;
  return status;
}

/// After a vote in which the memory of some ranks was registered and that of others was not.
void Readiness::stop_registering() {
  registrations_.stop();
  prepared_for_ = nullptr;
}

/// Takes the next step towards a communicator, if one is possible now.
Status Readiness::advance(LaneOperation& operation, const ReadinessVote& all) {
  using Device = ViewCommunicator::Device;
  if (all.message == 1) return carry_messages(operation);
  if (!own_.device) return {};
  if (all.can_begin == 0) {
    // NCCL may end a rank's old communicator only when the others have ended theirs, also those
    // that they keep to be shrunk. And it shrinks none that one rank has not kept.
    services_.communicators->end_retired(*services_.reaper);
    shared_.drop_with_parent();
    return {};
  }
  return shared_.begin(own_.device, own_.are_early() ? Device::kGuessed : Device::kKnown);
}

/// Waits for news: a communicator can be begun, has a message for other ranks, is ready, or dead.
Status Readiness::wait_for_news() {
  for (;;) {
    if (own_.are_early() && Clock::now() >= own_.held_up_until) return {};
    const Result<bool> news = shared_.wait_for_news();
    if (!news.ok() || news.value()) return news.status();
    if (Status status = view_.mesh->progress_and_check_peers(); !status.ok()) {
      view_.mesh->abandon();
      return status;
    }
  }
}

/// Exchanges one round of the communicators' messages between the ranks.
Status Readiness::carry_messages(LaneOperation& operation) {
  constexpr std::size_t kHead = 3;  // round and size of the text
  std::array<std::byte, kHead + BootstrapExchange::kMostBytes> frame{};
  const std::string& mine = message_->text;
  frame[0] = static_cast<std::byte>(message_->round);
  frame[1] = static_cast<std::byte>(mine.size() & 0xffU);
  frame[2] = static_cast<std::byte>(mine.size() >> 8U);
  std::memcpy(frame.data() + kHead, mine.data(), mine.size());
  Payload round;
  round.data.resize(frame.size());
  std::memcpy(round.data.data(), frame.data(), frame.size());
  if (Status status = allgather(view_, operation, round); !status.ok()) return status;
  std::vector<std::string> messages;
  for (int each = 0; each < view_.mesh->size(); ++each) {
    const auto theirs =
        round.data.bytes().subspan(static_cast<std::size_t>(each) * frame.size(), frame.size());
    // Another lane has already delivered this round on some ranks.
    if (theirs[0] != frame[0]) return {};
    const std::size_t bytes =
        std::min(BootstrapExchange::kMostBytes, std::to_integer<std::size_t>(theirs[1]) |
                                                    std::to_integer<std::size_t>(theirs[2]) << 8U);
    messages.emplace_back(reinterpret_cast<const char*>(theirs.data() + kHead), bytes);
  }
  shared_.deliver(message_->round, std::move(messages));
  return {};
}

}  // namespace elastic::collectives::nccl
