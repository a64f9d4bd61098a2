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
#include "coordinator/lane_view.hpp"
#include "elastic/types.hpp"

namespace elastic::coordinator {

/// Of an allreduce of one tensor.
transport::Fingerprint allreduce_fingerprint(DType dtype, ReduceOp op, std::size_t count);

/// One collective call of this worker, from its first attempt to its result. `call` and `pack` may
/// happen several times (once per view in which it is attempted), `unpack` once. Every attempt
/// starts from the intact input: the caller's tensors are only written in `unpack`, or, those that
/// are given to the backend as they lie, by a backend that puts back what it overwrote if it fails.
class Operation {
 public:
  virtual ~Operation() = default;

  /// Whether it means anything in a view with these members; asked before the first attempt.
  virtual bool can_begin(const Members& /*members*/) const { return true; }
  /// Tensors of so many bytes are given to the backend where they lie. In front of each attempt,
  /// with what is right for its view.
  virtual void make_direct(std::size_t /*least_bytes*/) {}
  /// What the backend is asked to do in a view with these members.
  virtual collectives::Call call(const Members& members) = 0;
  /// Copies the input into `payload.data`, but for what goes into `payload.direct`.
  virtual void pack(const Members& members, collectives::Payload& payload) = 0;
  /// Copies the result, computed by `members`, to the caller. Where `payload.direct` says so it is
  /// there already; a payload from another member has those tensors behind the others in `data`.
  virtual void unpack(const Members& members, const collectives::Payload& payload) = 0;
  /// Incarnation without which the operation cannot be replayed; empty if there is none.
  virtual std::string needs() const { return {}; }
};

/// Lays `tensors` out as sections of one payload, in order; tensors that travel as the same type
/// and follow one another share a section where the alignment lets them.
class TensorList {
 public:
  /// `wires`: one for each tensor.
  TensorList(std::vector<TensorView> tensors, std::vector<collectives::Wire> wires);

  const std::vector<collectives::Section>& sections() const { return sections_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t elements() const { return elements_; }
  /// Hash over wires and counts: tells groups of different shape apart.
  std::uint32_t shape_hash() const;
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const std::vector<std::size_t>& offsets() const { return offsets_; }
  /// Whether the tensor travels as halves of what it is.
  bool is_narrowed(std::size_t tensor) const {
    return wires_[tensor].dtype != tensors_[tensor].dtype;
  }
  bool has_narrowed() const;

  void pack_from(std::span<const ConstTensorView> inputs, collectives::Buffer& buffer) const;
  /// Copies the payload to the tensors; for an average divides by `contributors` on the way.
  void unpack(const collectives::Buffer& buffer, ReduceOp op, std::uint32_t contributors) const;

 private:
  std::vector<TensorView> tensors_;
  std::vector<collectives::Wire> wires_;
  std::vector<std::size_t> offsets_;  ///< of each tensor in the payload
  std::vector<collectives::Section> sections_;
  std::size_t bytes_ = 0;
  std::size_t elements_ = 0;
};

/// Allreduce of one or several tensors as one unit.
class AllreduceOperation : public Operation {
 public:
  /// `inputs` and `outputs` correspond one to one, and so do `wires`; where those are empty, all
  /// travel as they are. Only sums and averages are narrowed.
  AllreduceOperation(std::vector<ConstTensorView> inputs, std::vector<TensorView> outputs,
                     ReduceOp op, std::vector<collectives::Wire> wires = {});
  void make_direct(std::size_t least_bytes) override;
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;

  /// Where the results lie in a payload from another member, in the order of their offsets.
  struct Place {
    std::size_t tensor = 0;  ///< which, of those that were given
    std::size_t offset = 0;
    bool divided = false;  ///< for an average, by the number that contributed
  };
  std::vector<Place> places() const;

 private:
  std::vector<ConstTensorView> given_inputs_;
  std::vector<TensorView> given_outputs_;
  std::vector<collectives::Wire> wires_;
  transport::Fingerprint fingerprint_;
  std::size_t direct_from_ = collectives::Backend::kNeverDirect;
  std::vector<ConstTensorView> inputs_;  ///< of what is packed
  TensorList outputs_;
  std::vector<ConstTensorView> direct_inputs_;
  std::vector<TensorView> direct_outputs_;
  std::vector<std::size_t> packed_;  ///< which of the given tensors are; empty: all
  std::vector<std::size_t> direct_;
  ReduceOp op_;
};

class BroadcastOperation : public Operation {
 public:
  /// `root` is a rank in `members`, the view in force when the caller named it. The worker it named
  /// stays the root through view changes.
  BroadcastOperation(TensorView data, int root, const Members& members);
  /// Not where the root is gone already: others, who call later, mean somebody else by its rank.
  bool can_begin(const Members& members) const override { return members.rank_of(root_) >= 0; }
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;
  std::string needs() const override { return root_; }

 private:
  TensorView data_;
  std::string root_;
  bool is_root_ = false;
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
  /// `called_as`: what it is in the fingerprint, where the library makes the call by itself.
  AllgatherOperation(ConstTensorView block, Take take,
                     std::optional<transport::OwnCall> called_as = {});
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;

 private:
  ConstTensorView block_;
  Take take_;
  std::optional<transport::OwnCall> called_as_;
};

class ReduceScatterOperation : public Operation {
 public:
  using Take = std::function<void(std::span<const std::byte>, std::size_t)>;
  ReduceScatterOperation(ConstTensorView data, ReduceOp op, Take take);
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;

 private:
  ConstTensorView data_;
  ReduceOp op_;
  Take take_;
};

/// Ends in the same error on every rank: ranks submitted one name with different shapes.
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
