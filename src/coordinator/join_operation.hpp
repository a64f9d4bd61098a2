#pragma once

#include <cstdint>
#include <memory>

#include "coordinator/operation.hpp"

namespace elastic::coordinator {

/// The end of a join: an allreduce of the rank that joined last. All ranks know it from the order,
/// so this makes it the operation's result, which a survivor of a view change may have to take from
/// another one.
class JoinOperation : public Operation {
 public:
  /// `result` gets the rank that the operation has for its result.
  JoinOperation(int last, std::shared_ptr<int> result);

  collectives::Call call(const Members& members) override { return allreduce_.call(members); }
  void pack(const Members& members, collectives::Payload& payload) override {
    allreduce_.pack(members, payload);
  }
  void unpack(const Members& members, const collectives::Payload& payload) override;

 private:
  std::int64_t input_;
  std::int64_t output_ = -1;
  AllreduceOperation allreduce_;
  const std::shared_ptr<int> result_;
};

}  // namespace elastic::coordinator
