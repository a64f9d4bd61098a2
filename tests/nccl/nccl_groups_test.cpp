// Grouped reduce_scatters and allgathers of tensors on a device by the backend nccl, on stand-ins
// for NCCL and for the CUDA driver.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/plan/parts.hpp"
#include "contract/calls.hpp"
#include "coordinator/grouped_operations.hpp"
#include "nccl/contents.hpp"
#include "nccl/nccl_fixture.hpp"

namespace elastic::collectives::nccl {
namespace {

using coordinator::GroupedAllgatherOperation;
using coordinator::GroupedReduceScatterOperation;
using coordinator::Members;
using How = NcclScript::Allreduce;
using Floats = std::vector<float>;

constexpr float kUnwritten = -1;

Floats group_contribution(int rank, std::size_t count) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(i % 5) + static_cast<float>(rank);
  return values;
}

/// The tensors of one rank in a grouped call, on a device, as a lane gives them to a backend, with
/// the operation on host memory that goes with them.
class GpuGroup final : private DeviceTensors {
 public:
  GpuGroup(const testing::Gpu& gpu, int rank, int size, Kind kind,
           const std::vector<std::size_t>& inputs, const std::vector<std::size_t>& outputs)
      : gpu_(gpu) {
    members_.rank = rank;
    members_.incarnations.resize(static_cast<std::size_t>(size));
    coordinator::TensorGroup group;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      host_inputs_.push_back(group_contribution(rank, inputs[i]));
      host_outputs_.emplace_back(outputs[i], kUnwritten);
      inputs_.push_back(std::make_unique<testing::GpuArray<float>>(gpu, host_inputs_[i]));
      outputs_.push_back(std::make_unique<testing::GpuArray<float>>(gpu, host_outputs_[i]));
      tensors_.push_back(
          {DType::kF32, inputs[i], inputs_[i]->address(), outputs_[i]->address(), 0});
      group.inputs.push_back(view(std::span<const float>(host_inputs_[i])));
      group.outputs.push_back(view(std::span<float>(host_outputs_[i])));
    }
    if (kind == Kind::kAllgather) {
      operation_ = std::make_unique<GroupedAllgatherOperation>(
          std::move(group), [](const auto& /*counts*/) { return true; });
    } else {
      operation_ = std::make_unique<GroupedReduceScatterOperation>(
          std::move(group), ReduceOp::kSum, [](const auto&, const auto&) { return true; });
    }
  }

  Call call() { return operation_->call(members_); }
  void give(Payload& payload) {
    payload.clear();
    payload.form = OnDevice{this};
  }
  /// The outputs after the result of `payload`.
  std::vector<Floats> take(Payload& payload) {
    const auto result = payload.device_result();
    if (!result) {
      operation_->unpack(members_, payload);
      return host_outputs_;
    }
    expect_ok(unpack(gpu_, *result));
    std::vector<Floats> taken;
    for (const auto& output : outputs_) taken.push_back(output->read());
    return taken;
  }

 private:
  int device() const override { return 0; }
  std::span<const DeviceTensor> tensors() const override { return tensors_; }
  Status to_host(Payload& payload) override {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      std::ranges::copy(inputs_[i]->read(), host_inputs_[i].begin());
    }
    operation_->pack(members_, payload);
    return {};
  }

  const testing::Gpu& gpu_;
  Members members_;
  std::vector<Floats> host_inputs_;
  std::vector<Floats> host_outputs_;
  std::vector<std::unique_ptr<testing::GpuArray<float>>> inputs_;
  std::vector<std::unique_ptr<testing::GpuArray<float>>> outputs_;
  std::vector<DeviceTensor> tensors_;
  std::unique_ptr<coordinator::Operation> operation_;
};

class NcclGroupsTest : public NcclFixture {
 protected:
  using Counts = std::vector<std::size_t>;

  /// Rank r gives r * `more` elements more of the first tensor.
  void begin(Kind kind, const Counts& counts, std::size_t more = 0) {
    groups_.clear();
    payloads_ = std::vector<Payload>(static_cast<std::size_t>(size_));
    statuses_ = std::vector<Status>(static_cast<std::size_t>(size_));
    counts_ = counts;
    more_ = more;
    kind_ = kind;
    for (int rank = 0; rank < size_; ++rank) {
      const auto ranks = static_cast<std::size_t>(size_);
      Counts rooms;
      for (const std::size_t count : counts) rooms.push_back((count + more * ranks) * ranks);
      groups_.push_back(std::make_unique<GpuGroup>(gpu_, rank, size_, kind, given(rank), rooms));
      groups_.back()->give(payloads_[static_cast<std::size_t>(rank)]);
    }
  }
  Counts given(int rank) const {
    Counts counts = counts_;
    counts.front() += more_ * static_cast<std::size_t>(rank);
    return counts;
  }
  void run() {
    on_all_ranks([&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      statuses_[at] = backend(rank).run(position_, groups_[at]->call(), payloads_[at]);
    });
    ++position_;
    for (const Status& status : statuses_) expect_ok(status);
  }
  bool by_nccl() const { return payloads_.front().device_result() != nullptr; }
  void perform(Kind kind, const Counts& counts, std::size_t more = 0) {
    begin(kind, counts, more);
    run();
    for (int rank = 0; rank < size_; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      expect_right(rank, groups_[at]->take(payloads_[at]));
    }
  }
  void expect_right(int rank, const std::vector<Floats>& outputs) const {
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      Floats right = result(rank, i);
      right.resize(outputs[i].size(), kUnwritten);
      EXPECT_EQ(outputs[i], right) << "rank " << rank << ", tensor " << i;
    }
  }
  Floats result(int rank, std::size_t tensor) const {
    Floats whole;
    for (int each = 0; each < size_; ++each) {
      const Floats theirs = group_contribution(each, given(each)[tensor]);
      if (kind_ == Kind::kAllgather) {
        whole.insert(whole.end(), theirs.begin(), theirs.end());
        continue;
      }
      whole.resize(theirs.size());
      for (std::size_t i = 0; i < theirs.size(); ++i) whole[i] += theirs[i];
    }
    if (kind_ == Kind::kAllgather) return whole;
    const auto at = [&](int part) {
      return whole.begin() +
             static_cast<std::ptrdiff_t>(plan::part_begin(
                 whole.size(), static_cast<std::size_t>(size_), static_cast<std::size_t>(part)));
    };
    return {at(rank), at(rank + 1)};
  }

  Kind kind_ = Kind::kAllgather;
  Counts counts_;
  std::size_t more_ = 0;
  std::vector<std::unique_ptr<GpuGroup>> groups_;
  std::vector<Payload> payloads_;
  std::vector<Status> statuses_;
};

/// One call for the large tensor with equal parts, and one for all others.
TEST_F(NcclGroupsTest, ScattersInOneGroup) {
  make(3, /*waits=*/true);
  perform(Kind::kReduceScatter, {3UL << 18U, 1003, 1, (3UL << 18U) + 1, 12});
  EXPECT_TRUE(by_nccl());
  EXPECT_EQ(nccl_->counts().groups, 3);
  EXPECT_EQ(nccl_->counts().reduce_scatters, 2 * 3);
  perform(Kind::kReduceScatter, {2, 1});
  EXPECT_TRUE(by_nccl());
  EXPECT_EQ(nccl_->counts().reduce_scatters, 3 * 3);
}

TEST_F(NcclGroupsTest, GathersAllTensorsInOneCall) {
  make(3, true);
  perform(Kind::kAllgather, {1003, 5, 64});
  EXPECT_TRUE(by_nccl());
  EXPECT_EQ(nccl_->counts().allgathers, 3);
  EXPECT_EQ(nccl_->counts().broadcasts, 0);
  perform(Kind::kAllgather, {1003, 5, 64}, 1000);
  EXPECT_TRUE(by_nccl());
  EXPECT_EQ(nccl_->counts().broadcasts, 3 * 3) << "blocks of other sizes";
}

TEST_F(NcclGroupsTest, GoesThroughTheHostWhereNcclFails) {
  for (const Kind kind : {Kind::kReduceScatter, Kind::kAllgather}) {
    nccl_->reset();
    nccl_->script(1, {.allreduce = How::kFailsLater, .works_before = 0});
    make(3, true, kind == Kind::kAllgather ? 8 : 7);
    perform(kind, {1003, 5, 64});
    EXPECT_FALSE(by_nccl());
    nccl_->script(1, {});
    end_view();
  }
}

}  // namespace
}  // namespace elastic::collectives::nccl
