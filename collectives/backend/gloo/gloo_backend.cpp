#include "collectives/backend/gloo/gloo_backend.hpp"

#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>

#include "base/reduce_ops.hpp"
#include "collectives/backend/gloo/links_transport.hpp"
#include "collectives/kernels/reduce.hpp"

namespace elastic::collectives {
namespace {

using transport::OpTag;

/// Collectives by Gloo on the links of the view. Each call begins an operation on the links, with
/// its tag and fingerprint, and runs Gloo's algorithm; a failed link ends it by a LinksFailure.
///
/// Owned by the thread that runs the lane's operation. Any thread may call `abort`.
class GlooBackend final : public Backend {
 public:
  explicit GlooBackend(ModuleView view)
      : view_(std::move(view)), context_(std::make_shared<LinksContext>(view_.mesh)) {}

  Status run(std::uint64_t position, const Call& call, Payload& payload) override;
  Status settle_error(std::uint64_t position, const std::vector<int>& ranks) override {
    return view_.native->settle_error(position, ranks);
  }
  Status hand_over(std::uint64_t position, const HandoverPairs& pairs, Parcel& parcel) override {
    return view_.native->hand_over(position, pairs, parcel);
  }
  void abort() noexcept override { view_.native->abort(); }
  int rank() const override { return view_.mesh->rank(); }
  int size() const override { return view_.mesh->size(); }
  const char* name() const override { return "gloo"; }

 private:
  void perform(const Call& call, Payload& payload);
  void allreduce(const Section& section, ReduceOp op, std::byte* data);
  void broadcast(const Call& call, Payload& payload);
  void allgather(const Section& block, Payload& payload);
  void barrier();
  Status finish(std::uint64_t position, const Call& call, const Status& failure);

  ModuleView view_;
  std::shared_ptr<LinksContext> context_;
  Buffer spare_;  // takes an allgather's result, and is swapped with its input
};

/// Gloo has no reduce_scatter on unbound buffers, the kind that links_transport provides. Transfers
/// and mismatches exist only in this library. Gloo's allreduce combines element by element, and a
/// lone rank's not at all.
bool is_left_to_native(const Call& call, int ranks) {
  return !call.group.empty() || call.kind == Kind::kReduceScatter || call.kind == Kind::kTransfer ||
         call.kind == Kind::kMismatch || !is_elementwise(call.redop) ||
         (is_personal(call.kind) && call.kind != Kind::kReduce) ||
         (ranks == 1 && is_logical(call.redop));
}

Status GlooBackend::run(std::uint64_t position, const Call& call, Payload& payload) {
  if (is_left_to_native(call, size())) return view_.native->run(position, call, payload);
  if (view_.mesh->aborted()) return Status(Code::kAborted, "the view is being changed");
  if (Status status = view_.native->prepare(position); !status.ok()) return status;
  view_.native->announce(position, call.fingerprint);
  context_->begin(OpTag{view_.generation, position, OpTag::kNormal}, call.fingerprint);
  try {
    perform(call, payload);
    return {};
  } catch (const LinksFailure& failure) {
    return finish(position, call, failure.status());
  } catch (const std::exception& failure) {
    return finish(position, call, Status(Code::kInternal, std::string("Gloo: ") + failure.what()));
  }
}

/// Ends a failed operation. After a mismatch all ranks agree on the error.
Status GlooBackend::finish(std::uint64_t position, const Call& call, const Status& failure) {
  view_.mesh->abandon();
  if (failure.code() != Code::kMismatch && failure.code() != Code::kOperationAborted)
    return failure;
  Call mismatch;
  mismatch.kind = Kind::kMismatch;
  mismatch.fingerprint = call.fingerprint;
  mismatch.error = call.error;
  Payload nothing;
  return view_.native->run(position, mismatch, nothing);
}

void GlooBackend::perform(const Call& call, Payload& payload) {
  switch (call.kind) {
    case Kind::kAllreduce:
    case Kind::kReduce:  // for all: small ones of the native backend are, too
      // Without elements there is nothing to reduce, but still no rank may be ahead of the others.
      if (call.sections.empty()) barrier();
      for (const Section& section : call.sections) {
        if (section.count == 0) {
          barrier();
        } else {
          allreduce(section, call.redop, payload.data.data() + section.offset);
        }
      }
      return;
    case Kind::kBroadcast:
      return broadcast(call, payload);
    case Kind::kAllgather:
      return allgather(call.sections.front(), payload);
    case Kind::kBarrier:
      return barrier();
    case Kind::kReduceScatter:
    case Kind::kTransfer:
    case Kind::kMismatch:
    case Kind::kAlltoall:
    case Kind::kGather:
    case Kind::kScatter:
    case Kind::kScan:
      break;  // left to native
  }
  throw std::logic_error("there is no such collective here");
}

void GlooBackend::allreduce(const Section& section, ReduceOp op, std::byte* data) {
  const kernels::Function combine = kernels::reduce(section.dtype, op);
  const std::size_t element = size_of(section.dtype);
  gloo::AllreduceOptions options(context_);
  // Gloo takes a type, but uses only its size.
  switch (element) {
    case 1:
      options.setOutput(reinterpret_cast<std::uint8_t*>(data), section.count);
      break;
    case 2:
      options.setOutput(reinterpret_cast<std::uint16_t*>(data), section.count);
      break;
    case 4:
      options.setOutput(reinterpret_cast<std::uint32_t*>(data), section.count);
      break;
    default:
      options.setOutput(reinterpret_cast<std::uint64_t*>(data), section.count);
  }
  options.setReduceFunction([=](void* into, const void* one, const void* other, std::size_t count) {
    combine(static_cast<std::byte*>(into), static_cast<const std::byte*>(one),
            static_cast<const std::byte*>(other), count);
  });
  gloo::allreduce(options);
}

/// A barrier, then Gloo's broadcast. Without the barrier the root would return before the other
/// ranks enter, and a rank with another call might never meet it.
void GlooBackend::broadcast(const Call& call, Payload& payload) {
  barrier();
  gloo::BroadcastOptions options(context_);
  options.setOutput(reinterpret_cast<char*>(payload.data.data()), extent(call.sections));
  options.setRoot(call.root);
  gloo::broadcast(options);
}

void GlooBackend::allgather(const Section& block, Payload& payload) {
  const auto ranks = static_cast<std::size_t>(size());
  std::vector<std::uint64_t>& counts = payload.form.emplace<Blocks>().counts;
  counts.assign(ranks, 0);
  std::uint64_t mine = block.count;
  gloo::AllgatherOptions exchange(context_);
  exchange.setInput(&mine, 1);
  exchange.setOutput(counts.data(), ranks);
  gloo::allgather(exchange);

  const std::size_t element = size_of(block.dtype);
  const Result<std::size_t> total = gathered_bytes("allgather", counts, element);
  if (!total.ok()) throw LinksFailure(total.status());
  std::vector<std::size_t> bytes;
  for (const std::uint64_t count : counts) bytes.push_back(count * element);
  spare_.resize(total.value());
  gloo::AllgathervOptions options(context_);
  options.setInput(reinterpret_cast<char*>(payload.data.data() + block.offset), bytes_of(block));
  options.setOutput(reinterpret_cast<char*>(spare_.data()), bytes);
  gloo::allgatherv(options);
  std::swap(spare_, payload.data);
}

void GlooBackend::barrier() {
  gloo::BarrierOptions options(context_);
  gloo::barrier(options);
}

}  // namespace

std::unique_ptr<Backend> make_gloo_backend(ModuleView view) {
  return std::make_unique<GlooBackend>(std::move(view));
}

}  // namespace elastic::collectives
