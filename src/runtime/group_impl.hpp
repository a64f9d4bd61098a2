#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "elastic/group.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/group_membership.hpp"

namespace elastic {

/// The calls of a group are named calls of its members: those without a name get one, by their
/// number in the group.
///
/// Any thread.
class Group::Impl final : public runtime::OperationRunner, public runtime::CallScope {
 public:
  using Rules = std::vector<GroupRule>;

  /// `job` outlives it. Each rule chooses among the members that the rule before it has chosen.
  Impl(Context::Impl& job, Rules rules);

  Context::Impl& job() const { return job_; }
  const Rules& rules() const { return rules_; }
  const std::string& name() const { return name_; }

  /// The members in the present view as a view of their own; rank -1 if this worker is not in it.
  std::shared_ptr<const coordinator::Members> present() const;
  /// Ends the calls that `queue` has started; later ones fail.
  void stop() { queue_.stop(); }
  /// Waits for the calls of this thread that `queue` has started.
  void finish_queued() { queue_.wait_for_own(); }

  // OperationRunner
  std::shared_ptr<const coordinator::Members> members() const override;
  Contributors seen() const override { return members()->contributors(); }
  void flush() override;
  using OperationRunner::run;
  Result<Contributors> run(coordinator::Operation& operation) override;
  Status leave_without_result(const Status& why) override { return job_.leave_without_result(why); }
  device::Fetch fetch() const override { return device::Fetch::kAtOnce; }
  bool ranks_are_of_this_moment() const override { return true; }

  // CallScope
  runtime::Allreduces& allreduces() override { return allreduces_; }
  runtime::Collectives& collectives() override { return collectives_; }
  Contributors allreduce(ConstTensorView in, TensorView out, ReduceOp op) override {
    return scaled_allreduce(in, out, op, Scale(1, 1));
  }
  Contributors scaled_allreduce(ConstTensorView in, TensorView out, ReduceOp op,
                                Scale scale) override;
  Contributors barrier() override;
  Work submit(const char* call, std::string_view name, std::span<const TensorView> tensors,
              ReduceOp op, Scale scale, CudaStream stream) override;
  Work submit(const char* call, std::string_view name, const ConstTensorView& in,
              const TensorView& out, ReduceOp op) override;
  Work submit(const char* call, const ConstTensorView& tensor, NamedCall named) override;
  Work submit(const char* call, std::string_view name, const ConstTensorView& in,
              const TensorView& out, CudaStream stream, const MakeNamed& make) override;
  Work queue(const char* call, std::function<Contributors()> make) override;
  std::string where() const override;
  runtime::OwnedBlocks own(const BlocksView& blocks) const override { return {blocks, *this}; }
  Work send(const ConstTensorView& data, const Root& peer, int tag, CudaStream stream) override {
    return job_.send(mark_, *members(), data, peer, tag, stream);
  }
  Work receive(const TensorView& out, const Root& peer, int tag, CudaStream stream,
               const std::shared_ptr<ReceivedMessage>& result) override {
    return job_.receive(mark_, *members(), out, peer, tag, stream, result);
  }

 private:
  using Staged = Context::Impl::Staged;

  void renew() const ELASTIC_REQUIRES(mutex_);
  /// `staged`: the tensors of the call, if they are not in host memory. `name` gets the name that
  /// the call has among those of the job.
  std::shared_ptr<detail::WorkState> submit_named(NamedCall call, const Staged& staged = nullptr,
                                                  std::string* name = nullptr) const;
  Work submit_allreduce(std::string_view name, std::vector<ConstTensorView> in,
                        std::vector<TensorView> out, ReduceOp op, Scale scale,
                        const Staged& staged = nullptr) const;

  Context::Impl& job_;
  const Rules rules_;
  const std::string name_;
  const std::string mark_;
  runtime::Allreduces allreduces_;
  runtime::Collectives collectives_;
  runtime::CallQueue queue_;
  mutable Mutex mutex_;
  mutable runtime::GroupMembership membership_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic
