#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "coordinator/bucket_builder.hpp"
#include "coordinator/operation.hpp"

namespace elastic::coordinator {

/// The part of a rank that has joined in the others' allreduce: it gives the neutral element of
/// the reduction, and takes the result in memory of its own, which no thread reads.
class NeutralAllreduce : public Operation {
 public:
  /// `requests` are those of the bucket: allreduces with the same reduction and scale.
  explicit NeutralAllreduce(const BucketContent& requests);

  void choose_ways(const plan::AllreduceLimits& limits) override {
    allreduce_->choose_ways(limits);
  }
  collectives::Call call(const Members& members) override { return allreduce_->call(members); }
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override {
    allreduce_->unpack(members, payload);
  }
  std::vector<ResultPlace> places() const override { return allreduce_->places(); }

 private:
  std::vector<std::unique_ptr<std::byte[]>> tensors_;
  std::unique_ptr<AllreduceOperation> allreduce_;
  bool scaled_ = false;
};

/// The part of a rank that has joined in a call of the others (`goes_on_without_joined`).
std::unique_ptr<Operation> neutral_operation(const BucketContent& requests);

}  // namespace elastic::coordinator
