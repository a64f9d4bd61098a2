#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "coordinator/coordinator.hpp"
#include "elastic/collectives.hpp"
#include "runtime/allreduces.hpp"
#include "runtime/collectives.hpp"
#include "runtime/named_places.hpp"
#include "runtime/owned_blocks.hpp"

namespace elastic::runtime {

/// The means by which a Context, or a Group, makes its collectives: they differ in the members that
/// make a call.
///
/// Thread-safe.
class CallScope {
 public:
  using NamedCall = coordinator::NamedCall;
  using MakeNamed = std::function<NamedCall(const NamedPlaces& places)>;

  virtual ~CallScope() = default;

  virtual Allreduces& allreduces() = 0;
  virtual Collectives& collectives() = 0;

  /// Allreduce of one tensor in host memory.
  virtual Contributors allreduce(ConstTensorView in, TensorView out, ReduceOp op) = 0;
  virtual Contributors scaled_allreduce(ConstTensorView in, TensorView out, ReduceOp op,
                                        Scale scale) = 0;
  virtual Contributors barrier() = 0;

  /// Starts a named allreduce in place. `call`: what the caller has called, for messages.
  virtual Work submit(const char* call, std::string_view name, std::span<const TensorView> tensors,
                      ReduceOp op, Scale scale, CudaStream stream) = 0;
  /// The same from one tensor in host memory to another one.
  virtual Work submit(const char* call, std::string_view name, const ConstTensorView& in,
                      const TensorView& out, ReduceOp op) = 0;
  /// The same for calls on tensors in host memory that are no allreduces. `tensor` is one of them.
  virtual Work submit(const char* call, const ConstTensorView& tensor, NamedCall named) = 0;
  /// The same from `in` to `out`, which may be on a CUDA device. `make` makes the call on the
  /// memory that it gets, and keeps a copy of that.
  virtual Work submit(const char* call, std::string_view name, const ConstTensorView& in,
                      const TensorView& out, CudaStream stream, const MakeNamed& make) = 0;
  /// Starts a call without a name, in program order.
  virtual Work queue(const char* call, std::function<Contributors()> make) = 0;
  /// The meaning of ranks in the text of an error, to begin it with: "in the group of ranks 0 and
  /// 2, numbered from 0"; empty where they are those of the job.
  virtual std::string where() const = 0;
  virtual OwnedBlocks own(const BlocksView& blocks) const = 0;
  /// See OperationRunner.
  virtual Status leave_without_result(const Status& why) = 0;

  /// Starts a message to or from a member, `peer`.
  virtual Work send(const ConstTensorView& data, const Root& peer, int tag, CudaStream stream) = 0;
  virtual Work receive(const TensorView& out, const Root& peer, int tag, CudaStream stream,
                       const std::shared_ptr<ReceivedMessage>& result) = 0;
};

/// The error that the members found by themselves, with the meaning of its ranks
/// (CallScope::where).
inline Status found_at(const std::string& where, const Status& found) {
  return where.empty() ? found : found.within(where);
}

/// Keeps the scope of a Context for the time of one expression (detail::ProcessOwned::Use).
class ScopeUse {
 public:
  /// `users` counts this use already.
  ScopeUse(CallScope& scope, std::atomic<int>& users) : scope_(scope), users_(users) {}
  ~ScopeUse() { users_.fetch_sub(1); }
  ScopeUse(const ScopeUse&) = delete;
  ScopeUse& operator=(const ScopeUse&) = delete;
  CallScope* operator->() const { return &scope_; }
  CallScope& operator*() const { return scope_; }

 private:
  CallScope& scope_;
  std::atomic<int>& users_;
};

}  // namespace elastic::runtime
