#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "collectives/plan/group_slots.hpp"
#include "coordinator/operation.hpp"

namespace elastic::coordinator {

/// The tensors of a grouped call.
struct TensorGroup {
  std::vector<ConstTensorView> inputs;
  std::vector<TensorView> outputs;  ///< one for each input
};

/// Reduce_scatter of several tensors of one dtype as one unit. The parts are in the slots of
/// plan::GroupSlots, which a single reduce_scatter reduces.
class GroupedReduceScatterOperation : public Operation {
 public:
  /// Called with the view that has computed the result, before it is delivered: false if the
  /// outputs lack room, and are to stay as they are.
  using Accepts = std::function<bool(const Members& members, const plan::GroupSlots& slots)>;

  GroupedReduceScatterOperation(TensorGroup group, ReduceOp op, Accepts accepts);
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;
  /// All tensors, without their places in a payload, which depend on the view.
  std::vector<ResultPlace> places() const override;

  /// The slots of `inputs` for `ranks` ranks.
  static plan::GroupSlots slots_for(const std::vector<ConstTensorView>& inputs, std::size_t ranks);

 private:
  plan::GroupSlots slots_in(const Members& members) const;

  TensorGroup group_;
  DType dtype_;
  ReduceOp op_;
  Accepts accepts_;
};

/// Allgather of several tensors as one unit. The blocks of a rank are in a block of bytes
/// (plan::GroupBlock), and a single allgather gathers these.
class GroupedAllgatherOperation : public Operation {
 public:
  /// Elements that each rank gave: of each tensor, by rank.
  using Counts = std::vector<std::vector<std::size_t>>;
  /// Called with these before the result is delivered: false if the outputs lack room, and are to
  /// stay as they are.
  using Accepts = std::function<bool(Counts counts)>;

  GroupedAllgatherOperation(TensorGroup group, Accepts accepts);
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;
  /// All tensors, without their places in a payload, which depend on the view.
  std::vector<ResultPlace> places() const override;

 private:
  std::vector<std::size_t> own_bytes() const;

  TensorGroup group_;
  Accepts accepts_;
};

}  // namespace elastic::coordinator
