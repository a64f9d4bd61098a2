#include "collectives/backend/native/native_backend.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/reduce_ops.hpp"
#include "collectives/backend/native/adasum.hpp"
#include "collectives/backend/native/agreement.hpp"
#include "collectives/backend/native/eager_allreduce.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/native/group_backends.hpp"
#include "collectives/backend/native/handover.hpp"
#include "collectives/backend/native/lone_rank.hpp"
#include "collectives/backend/native/personal_collectives.hpp"
#include "collectives/backend/native/plan_cache.hpp"
#include "collectives/backend/native/shared_allreduce.hpp"
#include "collectives/backend/native/small_exchange.hpp"
#include "collectives/backend/native/subset_barrier.hpp"
#include "collectives/backend/native/undo_log.hpp"
#include "collectives/backend/native/view_capabilities.hpp"
#include "collectives/kernels/reduce.hpp"
#include "collectives/plan/allreduce_way.hpp"
#include "collectives/plan/exchange.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::collectives {
namespace {

using transport::Mesh;
using transport::OpTag;

Reducer reducer_of(DType dtype, ReduceOp op) {
  return {kernels::reduce(dtype, op), kernels::reduce(dtype, op, kernels::Store::kNonTemporal),
          size_of(dtype), dtype};
}

/// More members that have the state give none of it: they would need links with every joiner.
constexpr std::size_t kMostDonors = 16;

/// Bytes from which a reduction to a root, or a reduce_scatter, is not done as one for all.
constexpr std::size_t kReducedForAll = 8 * 1024 + 1;

/// Bytes of a message of a small exchange over links: more would delay the first byte of what it
/// has to say.
constexpr std::size_t kMostOverLinks = 1024;
/// And over eager channels.
constexpr std::size_t kMostOverChannels = std::size_t{16} << 10;
/// The same where each rank gets what is for the others, too, or reduces all of it.
constexpr std::size_t kMostForAll = std::size_t{4} << 10;

SmallExchange::Part part_of(const Call& call, const Payload& payload) {
  const Section& section = call.sections.front();
  return {.kind = call.kind,
          .dtype = section.dtype,
          .root = call.root,
          .count = section.count,
          .ragged = call.ragged,
          .counts = call.counts,
          .input = payload.input()};
}

SmallExchange::Part part_of(const SmallCall& call) {
  return {.kind = call.kind,
          .dtype = call.dtype,
          .root = call.root,
          .count = call.input.size() / size_of(call.dtype),
          .input = call.input};
}

bool reduces(Kind kind) {
  return kind == Kind::kAllreduce || kind == Kind::kReduce || kind == Kind::kReduceScatter;
}

/// The same call to `run`; the input remains to be packed.
Call whole_call(const SmallCall& small, int size) {
  Call call;
  call.kind = small.kind;
  call.redop = small.redop;
  call.root = small.root;
  call.sections = {{small.dtype, small.input.size() / size_of(small.dtype), 0}};
  call.fingerprint = small.fingerprint;
  if (small.kind == Kind::kAlltoall || small.kind == Kind::kScatter) {
    const auto blocks = static_cast<std::size_t>(size);
    call.counts.assign(blocks, call.sections.front().count / blocks);
  }
  return call;
}

/// Collectives as plans on a mesh. The thread that runs the lane's operation owns it; any thread
/// may call `abort`.
class NativeBackend final : public Backend {
 public:
  NativeBackend(std::uint64_t generation, std::shared_ptr<Mesh> mesh, const NativeOptions& options)
      : generation_(generation),
        mesh_(std::move(mesh)),
        options_(options),
        executor_(*mesh_),
        hosts_(options.hosts.empty() ? plan::Hosts::one(mesh_->size())
                                     : plan::Hosts(options.hosts)),
        plans_(mesh_->rank(), hosts_, options.segment_bytes, options.thresholds),
        personal_(mesh_->rank(), mesh_->size(), executor_, plans_),
        eager_(*mesh_),
        exchange_(mesh_->rank(), mesh_->size()),
        shared_(*mesh_, eager_, options.arena),
        adasum_(*mesh_, executor_),
        groups_(*mesh_, hosts_, [this](std::shared_ptr<Mesh> theirs, std::vector<int> hosts) {
          return make_native_backend(generation_, std::move(theirs),
                                     options_of_group(std::move(hosts)));
        }) {
    limit({});
    if (options.negotiated) adopt(*options.negotiated);
  }

  Status prepare(std::uint64_t position) override;
  void announce(std::uint64_t position, const transport::Fingerprint& call) override {
    if (eager_everywhere_) {
      eager_.post_fingerprint(OpTag{generation_, position, OpTag::kNormal}, call, {});
    }
  }
  Status run(std::uint64_t position, const Call& call, Payload& payload) override;
  Status hand_over(std::uint64_t position, const HandoverPairs& pairs, Parcel& parcel) override;
  void abort() noexcept override { mesh_->abort(); }
  plan::AllreduceLimits allreduce_limits() const override { return limits_; }
  bool takes(const SmallCall& call) const override;
  Status run_small(std::uint64_t position, const SmallCall& call, Payload& payload) override;
  Status settle() override;
  Status settle_error(std::uint64_t position, const std::vector<int>& ranks) override;
  int rank() const override { return mesh_->rank(); }
  int size() const override { return mesh_->size(); }
  const char* name() const override { return "native"; }

 private:
  Status check(const Call& call, const Payload& payload) const;
  using Counts = std::vector<std::uint64_t>;
  void limit(std::optional<std::size_t> most_eager_bytes);
  bool posts_eagerly(const Call& call) const {
    return eager_everywhere_ && call.phase == OpTag::kNormal;
  }
  std::size_t most_exchanged(Kind kind) const;
  bool exchanges(const Call& call, const Payload& payload) const;
  void post_eagerly(const OpTag& tag, const Call& call, const Payload& payload);
  Status exchange(const OpTag& tag, const Call& call, Payload& payload);
  Result<bool> finish_eagerly(std::span<const std::byte> own, Payload& payload);
  Result<bool> exchange_over_links(std::span<const std::byte> content, Payload& payload);
  Status exchange_small(const OpTag& tag, const SmallCall& call, Payload& payload);
  Status reduce_eagerly(const OpTag& tag, const SmallCall& call, Payload& payload);
  /// `counts`: of all ranks, if they are known (SmallExchange::counts).
  Status perform(const Call& call, Payload& payload, const Counts* counts);
  Status allreduce(const Call& call, Payload& payload);
  Status zero_copy_allreduce(const Call& call, Payload& payload);
  Status planned_allreduce(const Call& call, const Payload& payload);
  Status broadcast(const Call& call, Payload& payload);
  Status allgather(const Section& block, Payload& payload, const Counts* known);
  Status reduce_scatter(const Call& call, Payload& payload);
  Status meet(const Call& call);
  Status transfer(const Call& call, Payload& payload);
  Status one_way(const Call& call, Payload& payload, const Counts* counts);
  Status end_with_own_result(Status done, Payload& payload);
  Status run_in_group(std::uint64_t position, const Call& call, Payload& payload);
  NativeOptions options_of_group(std::vector<int> hosts) const;
  void adopt(const NativeOptions::Negotiated& negotiated);
  Status barrier() { return executor_.run(plans_.barrier(), nullptr); }
  /// Whether the input has to be saved before the result overwrites it.
  bool must_save(const ZeroCopyTensor& tensor) const {
    return options_.recoverable && tensor.input == tensor.output;
  }
  Status refuse(std::uint64_t position);
  Status finish(std::uint64_t position, const Statement& mine, const Status& failure);
  void rollback();
  bool is_eager(const Call& call, const Payload& payload) const;
  bool reduces_eagerly(Kind kind, ReduceOp redop, std::size_t bytes) const;
  bool is_reduced_for_all(std::size_t bytes) const {
    return bytes < std::min(kReducedForAll, limits_.lent_from);
  }

  std::uint64_t generation_;
  OpTag tag_;  // of the operation in flight
  std::shared_ptr<Mesh> mesh_;
  NativeOptions options_;
  Executor executor_;
  plan::Hosts hosts_;
  PlanCache plans_;
  PersonalCollectives personal_;
  EagerAllreduce eager_;
  SmallExchange exchange_;
  std::vector<std::span<const std::byte>> messages_;  // of a small exchange, by rank
  Buffer slots_;                                      // of one over links
  SharedAllreduce shared_;
  Adasum adasum_;
  GroupBackends groups_;
  UndoLog undo_;
  bool prepared_ = false;
  Status refused_;                 // the error of every operation if the ranks' options differ
  bool eager_everywhere_ = false;  // small allreduces are eager, as `prepare` agreed
  plan::AllreduceLimits limits_;
  NativeOptions::Negotiated negotiated_;
};

/// 1. In the view's first operation, negotiate the capabilities (`prepare`).
/// 2. A small allreduce on one host is eager.
/// 3. Any other call posts its fingerprint to the ranks that may wait for an eager message, and
///    offers its zero-copy tensors. If all ranks offer theirs, they are reduced in shared memory;
///    otherwise plans run on the links.
/// 4. After a failure, `finish` restores the inputs.
Status NativeBackend::run(std::uint64_t position, const Call& call, Payload& payload) try {
  if (mesh_->aborted()) return Status(Code::kAborted, "the view is being changed");
  if (!call.group.empty()) return run_in_group(position, call, payload);
  if (Status wrong = check(call, payload); !wrong.ok()) return wrong;
  if (Status status = prepare(position); !status.ok()) return status;
  const OpTag tag{generation_, position, call.phase};
  tag_ = tag;
  Status status;
  if (is_eager(call, payload)) {
    const Section& section = call.sections.front();
    status =
        reduce_eagerly(tag,
                       {section.dtype, call.redop, payload.data.bytes().first(bytes_of(section)),
                        call.fingerprint, call.kind},
                       payload);
  } else {
    const bool small = exchanges(call, payload);
    if (!small && posts_eagerly(call)) post_eagerly(tag, call, payload);
    mesh_->begin(tag, call.fingerprint);
    status = small ? exchange(tag, call, payload) : perform(call, payload, nullptr);
  }
  if (status.ok() && size() == 1) complete_alone(call, payload);
  return status.ok() ? status : finish(position, {call.fingerprint, call.error}, status);
} catch (...) {
  // Out of memory. No link may refer to the caller's memory any more, and its content is restored.
  mesh_->abandon();
  rollback();
  throw;
}

/// Posts the eager message of a call that neither is an eager allreduce nor exchanges its data: its
/// fingerprint, for ranks that wait for such a message, and its content where it has one.
void NativeBackend::post_eagerly(const OpTag& tag, const Call& call, const Payload& payload) {
  std::span<const std::byte> content;
  if (options_.recoverable && !payload.zero_copy().empty()) {
    content = shared_.offer(tag, call.fingerprint, payload.zero_copy());
  }
  eager_.post_fingerprint(tag, call.fingerprint, content);
}

/// Most bytes of a message in a small exchange; 0: there is none.
std::size_t NativeBackend::most_exchanged(Kind kind) const {
  if (size() == 1) return 0;
  if (!eager_everywhere_) {
    const bool one_shot = size() <= plan::kOneShotAllgatherRanks && mesh_->has_all_links();
    return one_shot ? kMostOverLinks : 0;
  }
  const bool for_all = kind == Kind::kAlltoall || kind == Kind::kScatter || kind == Kind::kScan;
  return std::min(eager_.most_bytes(), for_all ? kMostForAll : kMostOverChannels);
}

bool NativeBackend::exchanges(const Call& call, const Payload& payload) const {
  return call.phase == OpTag::kNormal && call.sections.size() == 1 &&
         payload.on_device() == nullptr &&
         exchange_.takes(part_of(call, payload), most_exchanged(call.kind));
}

/// Exchanges small data: in eager messages, or over the links. Where it is too large, plans follow,
/// and the ranks know the counts.
Status NativeBackend::exchange(const OpTag& tag, const Call& call, Payload& payload) {
  const std::span<const std::byte> content =
      exchange_.begin(part_of(call, payload), most_exchanged(call.kind));
  Result<bool> done = false;
  if (eager_everywhere_) {
    eager_.post_fingerprint(tag, call.fingerprint, content);
    if (Status came = eager_.await(tag, call.fingerprint); !came.ok()) return came;
    done = finish_eagerly(content, payload);
  } else {
    done = exchange_over_links(content, payload);
  }
  if (!done.ok()) return done.status();
  return done.value() ? Status() : perform(call, payload, &exchange_.counts());
}

/// When the eager messages of all ranks have come.
Result<bool> NativeBackend::finish_eagerly(std::span<const std::byte> own, Payload& payload) {
  messages_.resize(static_cast<std::size_t>(size()));
  for (int other = 0; other < size(); ++other) {
    const auto at = static_cast<std::size_t>(other);
    messages_[at] = other == rank() ? own : eager_.content_from(other);
  }
  return exchange_.finish(messages_, payload);
}

/// Each rank sends as many bytes to each other one.
Result<bool> NativeBackend::exchange_over_links(std::span<const std::byte> content,
                                                Payload& payload) {
  const std::size_t slot = exchange_.slot_bytes();
  slots_.resize(slot * static_cast<std::size_t>(size()));
  std::byte* const own = slots_.data() + slot * static_cast<std::size_t>(rank());
  if (!content.empty()) std::memcpy(own, content.data(), content.size());
  if (content.size() < slot) std::memset(own + content.size(), 0, slot - content.size());
  if (Status came = executor_.run(plans_.small_allgather(slot), slots_.data()); !came.ok()) {
    return came;
  }
  messages_.resize(static_cast<std::size_t>(size()));
  for (std::size_t at = 0; at < messages_.size(); ++at) {
    messages_[at] = {slots_.data() + at * slot, slot};
  }
  return exchange_.finish(messages_, payload);
}

bool NativeBackend::takes(const SmallCall& call) const {
  if (reduces(call.kind)) return reduces_eagerly(call.kind, call.redop, call.input.size());
  const SmallExchange::Part part = part_of(call);
  const std::size_t most = most_exchanged(call.kind);
  return eager_everywhere_ && exchange_.takes(part, most) && exchange_.fits(part, most);
}

Status NativeBackend::run_small(std::uint64_t position, const SmallCall& call, Payload& payload) {
  if (mesh_->aborted()) return Status(Code::kAborted, "the view is being changed");
  const OpTag tag{generation_, position, OpTag::kNormal};
  tag_ = tag;
  const Status status =
      reduces(call.kind) ? reduce_eagerly(tag, call, payload) : exchange_small(tag, call, payload);
  if (status.ok() && size() == 1) complete_alone(call, payload);
  return status.ok() ? status : finish(position, {call.fingerprint, {}}, status);
}

/// Leaves the whole result on each rank, also of a reduce_scatter. The input may be Payload::data.
Status NativeBackend::reduce_eagerly(const OpTag& tag, const SmallCall& call, Payload& payload) {
  payload.data.resize(call.input.size());
  if (call.kind == Kind::kReduceScatter) {
    payload.form.emplace<Blocks>().counts =
        plan::parts_of(call.input.size() / size_of(call.dtype), static_cast<std::size_t>(size()));
  }
  return eager_.run(tag, call.fingerprint, call.input, payload.data.data(),
                    reducer_of(call.dtype, call.redop));
}

/// As `exchange`, of a call whose message has this rank's data.
Status NativeBackend::exchange_small(const OpTag& tag, const SmallCall& call, Payload& payload) {
  const std::span<const std::byte> content =
      exchange_.begin(part_of(call), most_exchanged(call.kind));
  eager_.post_fingerprint(tag, call.fingerprint, content);
  if (Status came = eager_.await_unbegun(tag, call.fingerprint); !came.ok()) return came;
  const Result<bool> done = finish_eagerly(content, payload);
  if (!done.ok()) return done.status();
  if (done.value()) return {};
  // Other ranks have larger blocks.
  payload.data.resize(call.input.size());
  if (!call.input.empty()) {
    std::memcpy(payload.data.data(), call.input.data(), call.input.size());
  }
  mesh_->begin(tag, call.fingerprint);
  return perform(whole_call(call, size()), payload, &exchange_.counts());
}

/// Agrees on the capabilities of the view before its first operation.
Status NativeBackend::prepare(std::uint64_t position) {
  if (std::exchange(prepared_, true)) return refused_.ok() ? Status() : refuse(position);
  mesh_->begin(OpTag{generation_, position, OpTag::kBeforeOperation}, {});
  const Result<ViewCapabilities> agreed = negotiate_capabilities(
      *mesh_, executor_, plans_, hosts_, options_,
      hosts_.count() == 1 && mesh_->has_all_links() && eager_.find_channels());
  if (!agreed.ok()) {
    if (agreed.status().code() == Code::kMismatch) {
      refused_ = Status(Code::kMismatch, agreed.status().message(), -1, generation_);
    }
    return agreed.status();
  }
  const ViewCapabilities& capabilities = agreed.value();
  adopt({capabilities.eager, capabilities.thresholds, capabilities.segment_bytes});
  if (options_.record && size() > 1) {
    options_.record->set(describe(capabilities, hosts_, generation_, eager_.most_bytes()),
                         capabilities.costs);
  }
  return {};
}

void NativeBackend::adopt(const NativeOptions::Negotiated& negotiated) {
  prepared_ = true;
  negotiated_ = negotiated;
  eager_everywhere_ = negotiated.eager;
  if (eager_everywhere_) {
    if (options_.negotiated) (void)eager_.find_channels();  // those of the view are there
    limit(eager_.most_bytes());
  }
  plans_.use(negotiated.thresholds, negotiated.segment_bytes);
}

NativeOptions NativeBackend::options_of_group(std::vector<int> hosts) const {
  NativeOptions options = options_;
  options.hosts = std::move(hosts);
  options.record = nullptr;
  options.negotiated = negotiated_;
  return options;
}

/// A call of some ranks:
/// 1. They perform it by a backend of their own, over the same links.
/// 2. All ranks of the view meet in a barrier. No rank returns before the group has its results,
///    so no rank has to give another one a result that differs by rank.
/// Cost: that of the call among the group, and of a barrier.
Status NativeBackend::run_in_group(std::uint64_t position, const Call& call, Payload& payload) {
  if (Status status = prepare(position); !status.ok()) return status;
  GroupResult result;
  if (std::ranges::find(call.group, rank()) != call.group.end()) {
    if (!mesh_->has_all_links()) {
      mesh_->begin({generation_, position, OpTag::kBeforeOperation}, {});
      if (Status linked = mesh_->require(call.group); !linked.ok()) return linked;
    }
    Call theirs = call;
    theirs.group.clear();
    theirs.fingerprint = call.group_fingerprint;
    const Status done = groups_.of(call.group).run(position, theirs, payload);
    if (!done.ok() && !is_shared_error(done)) return done;
    result.error = done;
  }
  result.complete = true;
  payload.group = std::move(result);
  mesh_->begin({generation_, position, OpTag::kGroupEnd}, call.fingerprint);
  Status met = barrier();
  if (met.ok()) {
    payload.group->complete = false;
  } else {
    mesh_->abandon();
  }
  return met;
}

/// A lone rank has nothing to send, so that it may as well copy.
void NativeBackend::limit(std::optional<std::size_t> most_eager_bytes) {
  limits_ = plan::limits_for(size(), most_eager_bytes, options_.thresholds.algorithm);
  if (size() > 1) limits_.lent_from = options_.lent_from;
}

/// An error is an operation's result like any other: no rank has it before all have entered.
Status NativeBackend::refuse(std::uint64_t position) {
  mesh_->begin(OpTag{generation_, position, OpTag::kNormal}, {});
  const Status met = barrier();
  if (met.ok()) return refused_;
  mesh_->abandon();
  return met;
}

/// Ranks that have met in this call already have used its eager message.
bool NativeBackend::is_eager(const Call& call, const Payload& payload) const {
  if (!reduces(call.kind) || call.phase != OpTag::kNormal || !payload.lent.input.empty()) {
    return false;
  }
  if (call.sections.size() != 1 || !payload.zero_copy().empty()) return false;
  return reduces_eagerly(call.kind, call.redop, bytes_of(call.sections.front()));
}

bool NativeBackend::reduces_eagerly(Kind kind, ReduceOp redop, std::size_t bytes) const {
  if (kind == Kind::kReduceScatter && !is_reduced_for_all(bytes)) return false;
  const plan::AllreduceTensor packed{
      .bytes = bytes, .is_elementwise = is_elementwise(redop), .can_be_zero_copy = false};
  return plan::choose_way(packed, limits_) == plan::AllreduceWay::kEager;
}

/// Checks for mistakes of the calling layer, which all ranks make alike or none makes.
Status NativeBackend::check(const Call& call, const Payload& payload) const {
  const auto wrong = [](const std::string& what) { return Status(Code::kInternal, what); };
  const auto* const state = std::get_if<StateSections>(&payload.form);
  if (state == nullptr
          ? payload.input().size() < extent(call.sections)
          : !std::ranges::equal(state->sections, call.sections, {}, &std::span<std::byte>::size,
                                [](const Section& section) { return bytes_of(section); })) {
    return wrong("the data of a collective is not as long as its sections");
  }
  if (!is_elementwise(call.redop) &&
      (call.kind != Kind::kAllreduce || !payload.zero_copy().empty())) {
    return wrong("Adasum is an allreduce of packed tensors");
  }
  const bool one_section =
      call.kind == Kind::kAllgather || call.kind == Kind::kReduceScatter || is_personal(call.kind);
  if (one_section && call.sections.size() != 1) {
    return wrong(transport::describe_kind(call.fingerprint.kind) + " takes exactly one tensor");
  }
  if (call.root < 0 || call.root >= size()) {
    return wrong("the root, " + std::to_string(call.root) + ", is no rank");
  }
  const bool gives_blocks =
      call.kind == Kind::kAlltoall || (call.kind == Kind::kScatter && call.root == rank());
  if (gives_blocks && call.counts.size() != static_cast<std::size_t>(size())) {
    return wrong("there are not as many blocks as ranks");
  }
  return {};
}

/// Ends a failed operation. After a mismatch all ranks agree on the error, and the backend goes on;
/// any other failure ends the backend. Tensors are restored in either case.
Status NativeBackend::finish(std::uint64_t position, const Statement& mine, const Status& failure) {
  if (failure.code() != Code::kMismatch && failure.code() != Code::kOperationAborted) {
    mesh_->abandon();
    rollback();
    return failure;
  }
  auto agreed = agree_on_mismatch(*mesh_, executor_, plans_, OpTag{generation_, position, 0}, mine);
  rollback();
  if (!agreed.ok()) return agreed.status();
  return Status(Code::kMismatch, std::move(agreed).value(), -1, generation_);
}

Status NativeBackend::perform(const Call& call, Payload& payload, const Counts* counts) {
  switch (call.kind) {
    case Kind::kAllreduce:
      return allreduce(call, payload);
    case Kind::kBroadcast:
      return broadcast(call, payload);
    case Kind::kAllgather:
      return allgather(call.sections.front(), payload, counts);
    case Kind::kReduceScatter:
      return reduce_scatter(call, payload);
    case Kind::kBarrier:
      return barrier();
    case Kind::kTransfer:
      return transfer(call, payload);
    case Kind::kMismatch:
      return Status(Code::kMismatch, call.error);
    case Kind::kAlltoall:
      return end_with_own_result(personal_.alltoall(call, payload, counts), payload);
    case Kind::kGather:
      return end_with_own_result(personal_.gather(call, payload, counts), payload);
    case Kind::kScatter:
    case Kind::kReduce:
    case Kind::kScan:
      return one_way(call, payload, counts);
  }
  return Status(Code::kInternal, "no collective has this number");
}

/// Unpins zero-copy tensors and restores the inputs that were overwritten.
void NativeBackend::rollback() {
  shared_.unpin();
  undo_.restore();
}

Status NativeBackend::allreduce(const Call& call, Payload& payload) {
  // Without elements there is nothing to reduce, but still no rank may be ahead of the others.
  if (call.sections.empty() && payload.zero_copy().empty()) return barrier();
  if (call.redop == ReduceOp::kHierarchicalAdasum) {
    return adasum_.run_among(hosts_, call.sections, payload.data.data());
  }
  if (!is_elementwise(call.redop)) return adasum_.run(call.sections, payload.data.data());
  for (const Section& section : call.sections) {
    const Schedule& schedule = plans_.allreduce({section.count, size_of(section.dtype)});
    const Status status = executor_.run(schedule, payload.data.data() + section.offset,
                                        reducer_of(section.dtype, call.redop));
    if (!status.ok()) return status;
  }
  return payload.zero_copy().empty() ? Status() : zero_copy_allreduce(call, payload);
}

/// Reduces tensors in the caller's memory: through shared memory if all ranks have offered theirs,
/// otherwise by plans. The undo log saves inputs before they are overwritten in place.
Status NativeBackend::zero_copy_allreduce(const Call& call, Payload& payload) {
  std::size_t overwritten = 0;
  for (const ZeroCopyTensor& tensor : payload.zero_copy()) {
    if (must_save(tensor)) overwritten += tensor.bytes();
  }
  undo_.begin(*payload.undo, overwritten);
  const Result<bool> agreed = shared_.agreed();
  if (!agreed.ok()) return agreed.status();
  // The lane has left these tensors in place, whatever their sizes are.
  const auto way = plan::choose_way({.is_offered_by_all = agreed.value()}, {.zero_copy_from = 0});
  const Status status =
      way == plan::AllreduceWay::kZeroCopyShared
          ? shared_.run(payload.zero_copy(), call.redop, undo_, [this] { return barrier(); })
          : planned_allreduce(call, payload);
  if (status.ok()) undo_.clear();
  return status;
}

Status NativeBackend::planned_allreduce(const Call& call, const Payload& payload) {
  for (const ZeroCopyTensor& tensor : payload.zero_copy()) {
    const bool in_place = tensor.input == tensor.output;
    if (size() == 1 && !in_place) std::memcpy(tensor.output, tensor.input, tensor.bytes());
    Reducer reducer = reducer_of(tensor.dtype, call.redop);
    if (call.redop == ReduceOp::kAverage) reducer.divisor = static_cast<std::uint32_t>(size());
    PlanBuffers memory{tensor.output, tensor.input, must_save(tensor) ? &undo_ : nullptr};
    memory.bypasses_cache =
        !in_place && reducer.divisor == 1 && tensor.bytes() >= kernels::kBeyondCacheBytes;
    const Schedule& schedule = plans_.large_allreduce({tensor.count, size_of(tensor.dtype)});
    if (Status status = executor_.run(schedule, memory, reducer); !status.ok()) return status;
  }
  return {};
}

Status NativeBackend::settle() {
  if (!options_.recoverable) return {};
  Status met = barrier();
  // The caller may change the tensors from here on, even if another rank still reads them.
  shared_.unpin();
  if (!met.ok()) mesh_->abandon();
  return met;
}

Status NativeBackend::settle_error(std::uint64_t position, const std::vector<int>& ranks) {
  if (mesh_->aborted()) return Status(Code::kAborted, "the view is being changed");
  mesh_->begin(OpTag{generation_, position, OpTag::kSettled}, {});
  Status met = subset_barrier(*mesh_, ranks);
  if (!met.ok()) mesh_->abandon();
  return met;
}

/// Waits until all ranks have entered the call, and compares their calls: by the eager messages
/// that they have posted, or by a barrier.
Status NativeBackend::meet(const Call& call) {
  return posts_eagerly(call) ? eager_.await(tag_, call.fingerprint) : barrier();
}

/// The ranks meet, and the data goes along a tree or a chain from the root. If they did not meet
/// the root would return before the other ranks enter, and a rank with another call might never
/// meet it.
///
/// The root may have lent its tensor, and then has no result to give to a taker after its return.
/// So a large broadcast ends like a call whose results differ by rank.
Status NativeBackend::broadcast(const Call& call, Payload& payload) {
  if (Status status = meet(call); !status.ok()) return status;
  const std::size_t bytes = extent(call.sections);
  // The root's plan only reads.
  auto* const data =
      rank() == call.root ? const_cast<std::byte*>(payload.input().data()) : payload.data.data();
  const Status done = executor_.run(plans_.broadcast(call.root, bytes), data);
  if (bytes < limits_.lent_from) return done;
  payload.form.emplace<Blocks>();
  return end_with_own_result(done, payload);
}

/// Exchanges the ranks' counts, then runs an allgather of the blocks around a ring. A large result
/// may be in the caller's memory, so that each rank keeps its own.
Status NativeBackend::allgather(const Section& block, Payload& payload, const Counts* known) {
  const std::size_t element = size_of(block.dtype);
  auto& counts = payload.form.emplace<Blocks>().counts;
  if (Status told = personal_.share_count(block.count, known, counts); !told.ok()) return told;
  const Result<std::size_t> total = gathered_bytes("allgather", counts, element);
  if (!total.ok()) return total.status();
  const bool own_result = total.value() >= limits_.lent_from;
  if (!own_result) payload.lent.room = {};
  const Status done = personal_.move(plans_.allgather(counts, element), total.value(), payload);
  return own_result ? end_with_own_result(done, payload) : done;
}

/// Leaves each rank its part alone, and ends with a barrier. A small one is reduced for all, which
/// saves the barrier.
Status NativeBackend::reduce_scatter(const Call& call, Payload& payload) {
  const Section& section = call.sections.front();
  const std::size_t element = size_of(section.dtype);
  const bool reduced_for_all = is_reduced_for_all(bytes_of(section));
  if (reduced_for_all) {
    if (Status reduced = allreduce(call, payload); !reduced.ok()) return reduced;
  }
  std::vector<std::uint64_t>& parts = payload.form.emplace<Blocks>().counts;
  parts = plan::parts_of(section.count, static_cast<std::size_t>(size()));
  if (reduced_for_all) return {};
  const Status done = personal_.reduce_scatter(
      section, static_cast<std::size_t>(parts[static_cast<std::size_t>(rank())]) * element,
      reducer_of(section.dtype, call.redop), payload);
  return end_with_own_result(done, payload);
}

/// Collectives in which a rank may have nothing to send before it has received something. Ranks
/// that call different things could then wait for each other, so they meet first. A small reduction
/// to a root is one for all, whose result every rank has: that saves the meeting and the barrier.
Status NativeBackend::one_way(const Call& call, Payload& payload, const Counts* counts) {
  const Section& section = call.sections.front();
  if (call.kind == Kind::kReduce && is_reduced_for_all(bytes_of(section))) {
    return allreduce(call, payload);
  }
  if (counts == nullptr) {  // otherwise they have met
    if (Status met = meet(call); !met.ok()) return met;
  }
  const Reducer reducer = reducer_of(section.dtype, call.redop);
  const Status done = call.kind == Kind::kScatter  ? personal_.scatter(call, payload, counts)
                      : call.kind == Kind::kReduce ? personal_.reduce(call, reducer, payload)
                                                   : personal_.scan(call, reducer, payload);
  return end_with_own_result(done, payload);
}

/// Ends a collective whose results differ by rank. No other rank has this rank's result. So no rank
/// may return before every rank has its own.
Status NativeBackend::end_with_own_result(Status done, Payload& payload) {
  if (!done.ok()) return done;
  Blocks& blocks = std::get<Blocks>(payload.form);
  blocks.of_this_rank = true;
  blocks.own_block_complete = true;
  Status met = barrier();
  if (met.ok()) blocks.own_block_complete = false;
  return met;
}

/// Sends each section of a state to the receivers, in segments that the donors share.
Status NativeBackend::transfer(const Call& call, Payload& payload) {
  if (Status status = barrier(); !status.ok()) return status;
  const auto* const state = std::get_if<StateSections>(&payload.form);
  std::vector<int> donors = call.donors;
  if (donors.size() > kMostDonors) donors.resize(kMostDonors);
  for (std::size_t i = 0; i < call.sections.size(); ++i) {
    const Section& section = call.sections[i];
    std::byte* const at =
        state == nullptr ? payload.data.data() + section.offset : state->sections[i].data();
    const Schedule schedule(plan::transfer(mesh_->rank(), donors, call.receivers, bytes_of(section),
                                           options_.transfer_segment_bytes));
    if (Status status = executor_.run(schedule, at); !status.ok()) return status;
    // Rotates the donors: a small section has a single segment, which the first donor sends.
    if (!donors.empty()) std::rotate(donors.begin(), donors.begin() + 1, donors.end());
  }
  return {};
}

Status NativeBackend::hand_over(std::uint64_t position, const HandoverPairs& pairs,
                                Parcel& parcel) {
  const auto concerned = [this](const std::vector<int>& ranks) {
    return std::find(ranks.begin(), ranks.end(), mesh_->rank()) != ranks.end();
  };
  if (!concerned(pairs.senders) && !concerned(pairs.takers)) return {};
  mesh_->begin(OpTag{generation_, position, OpTag::kBeforeOperation}, transport::Fingerprint{});
  Status status = mesh_->require(peers_in(pairs, rank()));
  if (status.ok()) status = hand_over_parcel(*mesh_, pairs, parcel);
  if (!status.ok()) mesh_->abandon();
  return status;
}

}  // namespace

std::unique_ptr<Backend> make_native_backend(std::uint64_t generation, std::shared_ptr<Mesh> mesh,
                                             const NativeOptions& options) {
  return std::make_unique<NativeBackend>(generation, std::move(mesh), options);
}

}  // namespace elastic::collectives
