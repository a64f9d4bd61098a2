#pragma once

#include "coordinator/block_operations.hpp"
#include "coordinator/operation.hpp"

namespace elastic::coordinator {

/// A reduction whose result the root alone gets.
class ReduceOperation : public RootedOperation {
 public:
  /// `out` is written on the root alone. `room`: all of it, or nothing if it is not apart from
  /// `in`.
  ReduceOperation(ConstTensorView in, TensorView out, ReduceOp op, CallRoot root, Room room = {});
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;
  void choose_ways(const plan::AllreduceLimits& limits) override { lent_from_ = limits.lent_from; }
  /// Copies the result of `contributors` members to `out`.
  static void take_whole(const collectives::Payload& payload, ReduceOp op, int contributors,
                         const TensorView& out);

 private:
  ConstTensorView in_;
  TensorView out_;
  ReduceOp op_;
  Room room_;
  std::size_t lent_from_ = plan::AllreduceLimits::kNever;
};

/// Each member gets the reduction of the members with lower ranks and, unless it is exclusive, of
/// itself. An exclusive one gives rank 0 the neutral element.
class ScanOperation : public Operation {
 public:
  ScanOperation(ConstTensorView in, TensorView out, ReduceOp op, bool exclusive);
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;

 private:
  void make_logical(std::byte* data) const;

  ConstTensorView in_;
  TensorView out_;
  ReduceOp op_;
  bool exclusive_;
};

}  // namespace elastic::coordinator
