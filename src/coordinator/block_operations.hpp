#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "coordinator/addressed_blocks.hpp"
#include "coordinator/call_root.hpp"
#include "coordinator/call_shape.hpp"
#include "coordinator/operation.hpp"

namespace elastic::coordinator {

/// Every member gives each other one a block. After a death the blocks for the dead are left out,
/// and those of the dead are not in the result.
class AlltoallOperation : public Operation {
 public:
  /// Takes the blocks of all members, and how many elements each gave.
  using Take = std::function<void(std::span<const std::byte>, std::vector<std::size_t>)>;
  /// `ragged`: the sizes of blocks may differ, and `row` is the shape of their elements.
  AlltoallOperation(AddressedBlocks blocks, bool ragged, RowShape row, Take take, Room room = {});
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;
  /// Gives `take` what this worker gets.
  static void take_blocks(const Members& members, const collectives::Payload& payload, DType dtype,
                          const Take& take);

 private:
  AddressedBlocks blocks_;
  bool ragged_;
  std::uint32_t row_;
  Take take_;
  Room room_;
};

/// An operation that cannot be replayed without its root.
class RootedOperation : public Operation {
 public:
  explicit RootedOperation(CallRoot root) : root_(std::move(root)) {}
  bool can_begin(const Members& members) const override { return root_.can_begin(members); }
  bool is_lost(const Members& members) const override { return root_.is_lost(members); }
  std::string needs() const override { return root_.needed(); }

 protected:
  const CallRoot& root() const { return root_; }
  /// `call` with the root.
  collectives::Call with_root(collectives::Call call, const Members& members) const;

 private:
  CallRoot root_;
};

/// Every member gives the root a block.
class GatherOperation : public RootedOperation {
 public:
  using Take = AlltoallOperation::Take;
  /// `take` is called on the root alone.
  GatherOperation(ConstTensorView block, CallRoot root, RowShape row, Take take, Room room = {});
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;

 private:
  ConstTensorView block_;
  std::uint32_t row_;
  Take take_;
  Room room_;
};

/// The root gives every member a block.
class ScatterOperation : public RootedOperation {
 public:
  /// Takes this member's block, and the elements of the blocks before it.
  using Take = std::function<void(std::span<const std::byte>, std::size_t)>;
  /// `blocks`: of the root; of other members only the type counts.
  ScatterOperation(AddressedBlocks blocks, CallRoot root, Take take, Room room = {});
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;

 private:
  AddressedBlocks blocks_;
  Take take_;
  Room room_;
};

}  // namespace elastic::coordinator
