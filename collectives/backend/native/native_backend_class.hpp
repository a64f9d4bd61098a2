#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collectives/backend/native/adasum.hpp"
#include "collectives/backend/native/agreement.hpp"
#include "collectives/backend/native/eager_allreduce.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/native/group_backends.hpp"
#include "collectives/backend/native/native_backend.hpp"
#include "collectives/backend/native/personal_collectives.hpp"
#include "collectives/backend/native/plan_cache.hpp"
#include "collectives/backend/native/shared_allreduce.hpp"
#include "collectives/backend/native/small_exchange.hpp"
#include "collectives/backend/native/undo_log.hpp"
#include "collectives/plan/allreduce_way.hpp"

namespace elastic::collectives {

/// Collectives as plans on a mesh. The thread that runs the lane's operation owns it; any thread
/// may call `abort`.
class NativeBackend final : public Backend {
 public:
  NativeBackend(std::uint64_t generation, std::shared_ptr<transport::Mesh> mesh,
                const NativeOptions& options)
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
        groups_(*mesh_, hosts_,
                [this](std::shared_ptr<transport::Mesh> theirs, std::vector<int> hosts) {
                  return make_native_backend(generation_, std::move(theirs),
                                             options_of_group(std::move(hosts)));
                }) {
    limit({});
    if (options.negotiated) adopt(*options.negotiated);
  }

  Status prepare(std::uint64_t position) override;
  void announce(std::uint64_t position, const transport::Fingerprint& call) override {
    if (eager_everywhere_) {
      eager_.post_fingerprint(transport::OpTag{generation_, position, transport::OpTag::kNormal},
                              call, {});
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
    return eager_everywhere_ && call.phase == transport::OpTag::kNormal;
  }
  std::size_t most_exchanged(Kind kind) const;
  bool exchanges(const Call& call, const Payload& payload) const;
  void post_eagerly(const transport::OpTag& tag, const Call& call, const Payload& payload);
  Status exchange(const transport::OpTag& tag, const Call& call, Payload& payload);
  Result<bool> finish_eagerly(std::span<const std::byte> own, Payload& payload);
  Result<bool> exchange_over_links(std::span<const std::byte> content, Payload& payload);
  Status exchange_small(const transport::OpTag& tag, const SmallCall& call, Payload& payload);
  Status reduce_eagerly(const transport::OpTag& tag, const SmallCall& call, Payload& payload);
  /// `counts`: of all ranks, if they are known (SmallExchange::counts).
  Status perform(const Call& call, Payload& payload, const Counts* counts);
  Status allreduce(const Call& call, Payload& payload);
  Status zero_copy_allreduce(const Call& call, Payload& payload);
  Status planned_allreduce(const Call& call, const Payload& payload);
  Status broadcast(const Call& call, Payload& payload);
  Status allgather(const Section& block, Payload& payload, const Counts* known);
  Status reduce_scatter(const Call& call, Payload& payload);
  Status meet(const Call& call);
  PlanCache::Meeting meeting_in_plan(const Call& call, std::size_t bytes) const;
  Status transfer(const Call& call, Payload& payload);
  Status one_way(const Call& call, Payload& payload, const Counts* counts);
  Status end_with_own_result(Status done, Payload& payload);
  Status run_in_group(std::uint64_t position, const Call& call, Payload& payload);
  NativeOptions options_of_group(std::vector<int> hosts) const;
  bool is_of_group() const { return options_.negotiated.has_value(); }
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
  bool is_reduced_for_all(std::size_t bytes) const;

  std::uint64_t generation_;
  transport::OpTag tag_;  // of the operation in flight
  std::shared_ptr<transport::Mesh> mesh_;
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

}  // namespace elastic::collectives
