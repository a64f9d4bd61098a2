// Calls of small data: reduced by all ranks at once, or done in one exchange.
#include <algorithm>
#include <cstring>

#include "base/reduce_ops.hpp"
#include "collectives/backend/native/lone_rank.hpp"
#include "collectives/backend/native/native_backend_class.hpp"
#include "collectives/plan/exchange.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::collectives {

using transport::OpTag;

namespace {

/// Bytes from which a reduction to a root, or a reduce_scatter, is not done as one for all.
constexpr std::size_t kReducedForAll = 8 * 1024 + 1;

/// Bytes of a message of a small exchange over links: more would delay the first byte of what it
/// has to say.
constexpr std::size_t kMostOverLinks = 2048;
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

}  // namespace

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

bool NativeBackend::is_reduced_for_all(std::size_t bytes) const {
  return bytes < std::min(kReducedForAll, limits_.lent_from);
}

}  // namespace elastic::collectives
