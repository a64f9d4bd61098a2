#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/backend.hpp"
#include "collectives/backend/wire.hpp"
#include "collectives/plan/allreduce_way.hpp"
#include "coordinator/call_root.hpp"
#include "coordinator/call_shape.hpp"
#include "coordinator/lane_view.hpp"
#include "elastic/scale.hpp"
#include "elastic/types.hpp"

namespace elastic::coordinator {

/// The fingerprint of an allreduce of one tensor that travels in its own type.
transport::Fingerprint allreduce_fingerprint(DType dtype, ReduceOp op, std::size_t count);

/// Room for the result in the caller's memory, apart from the input. A large result is written
/// there at once, and the function that takes it gets that memory.
using Room = std::span<std::byte>;

/// One collective call of this worker, from its first attempt to its result. A Lane runs it: `pack`
/// once per attempt (one attempt per view), `unpack` once, with the result. `call` may come more
/// often, and changes nothing.
///
/// Every attempt starts from the intact input. The caller's tensors are written in `unpack` only,
/// with two exceptions. The backend works on zero-copy tensors in place, and restores what it has
/// overwritten if the attempt fails. And it may write to a Room, which is no input.
class Operation {
 public:
  virtual ~Operation() = default;

  /// Whether the operation can start in a view with these members. Asked before the first attempt.
  virtual bool can_begin(const Members& /*members*/) const { return true; }
  /// Whether the operation ends in kRootLost in a view with these members, on all of them.
  virtual bool is_lost(const Members& /*members*/) const { return false; }
  /// From now on each tensor of an allreduce takes the way that `limits` give it: the backend works
  /// on some in place. Large inputs of other collectives are lent. Called before each attempt, with
  /// the limits of its view.
  virtual void choose_ways(const plan::AllreduceLimits& /*limits*/) {}
  /// The call that the backend runs in a view with these members.
  virtual collectives::Call call(const Members& members) = 0;
  /// Copies the input into `payload`, which is empty and packed, or gives it the form that lists
  /// the tensors instead.
  virtual void pack(const Members& members, collectives::Payload& payload) = 0;
  /// Its tensors, if all that a backend needs of it is on devices: it may begin early. Asked after
  /// `choose_ways`.
  virtual collectives::DeviceTensors* on_device() { return nullptr; }
  /// Copies the result, computed by `members`, to the caller. ZeroCopyTensors have it already. A
  /// payload from another member is contiguous: it has the zero-copy tensors in `data`, after the
  /// others.
  virtual void unpack(const Members& members, const collectives::Payload& payload) = 0;
  /// The place of one tensor's result in a payload from another member (Payload::make_contiguous).
  struct ResultPlace {
    std::size_t tensor = 0;  ///< index among the operation's tensors
    std::size_t offset = 0;
    std::optional<collectives::Wire> wire = {};  ///< of the elements there; none: their own type
  };
  /// The places of all tensors' results, by offset: by default of one tensor, which is the payload.
  virtual std::vector<ResultPlace> places() const { return {ResultPlace{}}; }
  /// The incarnation without which the operation cannot be replayed; empty if there is none.
  virtual std::string needs() const { return {}; }
};

/// The layout of `tensors` in one payload, in order. Neighbours that travel as the same type share
/// a section, unless the operation combines whole tensors.
class TensorList {
 public:
  /// `wires` has one entry for each tensor.
  TensorList(std::vector<TensorView> tensors, std::vector<collectives::Wire> wires, ReduceOp op);

  const std::vector<collectives::Section>& sections() const { return sections_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t elements() const { return elements_; }
  /// Hash over wires and counts, which distinguishes groups of different shapes.
  std::uint32_t shape_hash() const;
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const std::vector<std::size_t>& offsets() const { return offsets_; }
  /// Whether the tensor travels in a wire dtype, with fewer bits than its own type.
  bool is_cast(std::size_t tensor) const { return wires_[tensor].dtype != tensors_[tensor].dtype; }
  bool has_cast() const;

  /// Copies the inputs, multiplied by `factor`, to the payload. Tensors that are cast have scales
  /// of their own instead.
  void pack_from(std::span<const ConstTensorView> inputs, double factor,
                 collectives::Buffer& buffer) const;
  /// Copies the payload to the tensors, for an average divided by `contributors`, and multiplied by
  /// `factor`.
  void unpack(const collectives::Buffer& buffer, ReduceOp op, std::uint32_t contributors,
              double factor) const;

 private:
  std::vector<TensorView> tensors_;
  std::vector<collectives::Wire> wires_;
  std::vector<std::size_t> offsets_;  ///< of each tensor in the payload, in bytes
  std::vector<collectives::Section> sections_;
  std::size_t bytes_ = 0;
  std::size_t elements_ = 0;
};

/// Allreduce of one or several tensors as one unit.
class AllreduceOperation : public Operation {
 public:
  /// `inputs`, `outputs` and `wires` correspond one to one. With empty `wires` all tensors travel
  /// in their own types. Only sums and averages may be cast to a wire dtype. Only floats that are
  /// not cast have a scale other than 1.
  AllreduceOperation(std::vector<ConstTensorView> inputs, std::vector<TensorView> outputs,
                     ReduceOp op, std::vector<collectives::Wire> wires = {},
                     Scale scale = Scale(1, 1));
  void choose_ways(const plan::AllreduceLimits& limits) override;
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;
  std::vector<ResultPlace> places() const override;

 private:
  std::vector<ConstTensorView> given_inputs_;
  std::vector<TensorView> given_outputs_;
  std::vector<collectives::Wire> wires_;
  transport::Fingerprint fingerprint_;
  plan::AllreduceLimits limits_;         ///< by which the tensors are packed or zero-copy now
  std::vector<ConstTensorView> inputs_;  ///< those that are packed
  TensorList outputs_;
  std::vector<collectives::ZeroCopyTensor> zero_copy_;
  /// Indices of `outputs_` and of `zero_copy_` among the given tensors.
  std::vector<std::size_t> packed_places_;
  std::vector<std::size_t> zero_copy_places_;
  ReduceOp op_;
  Scale scale_;
};

class BroadcastOperation : public Operation {
 public:
  BroadcastOperation(TensorView data, CallRoot root);
  bool can_begin(const Members& members) const override { return root_.can_begin(members); }
  bool is_lost(const Members& members) const override { return root_.is_lost(members); }
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;
  std::string needs() const override { return root_.needed(); }
  void choose_ways(const plan::AllreduceLimits& limits) override { lent_from_ = limits.lent_from; }

 private:
  TensorView data_;
  CallRoot root_;
  std::size_t lent_from_ = plan::AllreduceLimits::kNever;
};

class BarrierOperation : public Operation {
 public:
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;
};

class AllgatherOperation : public Operation {
 public:
  using Take = std::function<void(std::span<const std::byte>, std::vector<std::size_t>)>;
  AllgatherOperation(ConstTensorView block, Take take, RowShape row, Room room = {});
  /// `called_as` replaces the kind in the fingerprint of a call that the library makes by itself.
  AllgatherOperation(ConstTensorView block, Take take,
                     std::optional<transport::OwnCall> called_as = {});
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;
  void choose_ways(const plan::AllreduceLimits& limits) override { lent_from_ = limits.lent_from; }

 private:
  ConstTensorView block_;
  Take take_;
  std::uint32_t row_ = 0;  ///< hash of its shape
  std::optional<transport::OwnCall> called_as_;
  Room room_;
  std::size_t lent_from_ = plan::AllreduceLimits::kNever;
};

class ReduceScatterOperation : public Operation {
 public:
  using Take = std::function<void(std::span<const std::byte>, std::size_t)>;
  ReduceScatterOperation(ConstTensorView data, ReduceOp op, Take take, Room room = {});
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;
  /// Gives `take` this worker's part, for an average divided.
  static void take_part(const Members& members, const collectives::Payload& payload, DType dtype,
                        ReduceOp op, const Take& take);
  void choose_ways(const plan::AllreduceLimits& limits) override { lent_from_ = limits.lent_from; }

 private:
  ConstTensorView data_;
  ReduceOp op_;
  Take take_;
  Room room_;
  std::size_t lent_from_ = plan::AllreduceLimits::kNever;
};

/// Runs in place of a named operation whose shapes differ between the ranks: ends in the same error
/// on every rank.
class MismatchOperation : public Operation {
 public:
  explicit MismatchOperation(std::string error) : error_(std::move(error)) {}
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;

 private:
  std::string error_;
};

}  // namespace elastic::coordinator
