// An operation from its begin to its end, and the agreement on a view's capabilities before.
#include <algorithm>
#include <string>
#include <utility>

#include "base/reduce_ops.hpp"
#include "collectives/backend/native/handover.hpp"
#include "collectives/backend/native/lone_rank.hpp"
#include "collectives/backend/native/native_backend_class.hpp"
#include "collectives/backend/native/subset_barrier.hpp"
#include "collectives/backend/native/view_capabilities.hpp"

namespace elastic::collectives {

using transport::Mesh;
using transport::OpTag;

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
    const bool is_shared = is_shared_error(done) || done.code() == Code::kRootLost;
    if (!done.ok() && !is_shared) return done;
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
/// any other failure ends the backend. Tensors are restored in either case. In a group members may
/// learn of a root's death in different calls: a root that is lost to one of them is so for all.
Status NativeBackend::finish(std::uint64_t position, const Statement& mine, const Status& failure) {
  if (failure.code() != Code::kMismatch && failure.code() != Code::kOperationAborted) {
    mesh_->abandon();
    rollback();
    return failure;
  }
  auto agreed = agree_on_mismatch(*mesh_, executor_, plans_, OpTag{generation_, position, 0}, mine);
  rollback();
  if (!agreed.ok()) return agreed.status();
  if (is_of_group()) {
    std::string lost = lost_root_message(agreed.value());
    if (!lost.empty()) return Status(Code::kRootLost, std::move(lost), -1, generation_);
  }
  return Status(Code::kMismatch, mismatch_message(agreed.value()), -1, generation_);
}

/// Unpins zero-copy tensors and restores the inputs that were overwritten.
void NativeBackend::rollback() {
  shared_.unpin();
  undo_.restore();
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

std::unique_ptr<Backend> make_native_backend(std::uint64_t generation, std::shared_ptr<Mesh> mesh,
                                             const NativeOptions& options) {
  return std::make_unique<NativeBackend>(generation, std::move(mesh), options);
}

}  // namespace elastic::collectives
