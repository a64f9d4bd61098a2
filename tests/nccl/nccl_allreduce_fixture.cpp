#include "nccl/nccl_allreduce_fixture.hpp"

#include <cstddef>

namespace elastic::collectives::nccl {

NcclAllreduceFixture::Shapes NcclAllreduceFixture::with_casts() {
  return {{DType::kF32, 100003, {DType::kF16, 1024}},
          {DType::kF64, 33, {DType::kF16, 1024}},
          {DType::kF32, 70000, {DType::kBF16}},
          {DType::kF32, 5},
          {DType::kF16, 3}};
}

std::unique_ptr<NcclAllreduceFixture::Outcome> NcclAllreduceFixture::begin(const Shapes& shapes) {
  auto outcome = std::make_unique<Outcome>();
  outcome->payloads.resize(static_cast<std::size_t>(size_));
  outcome->statuses.resize(static_cast<std::size_t>(size_));
  for (int rank = 0; rank < size_; ++rank) {
    outcome->tensors.push_back(std::make_unique<GpuTensors>(gpu_, rank, shapes));
    outcome->tensors.back()->give(outcome->payloads[static_cast<std::size_t>(rank)]);
  }
  return outcome;
}

void NcclAllreduceFixture::run_on(int rank, Outcome& outcome, ReduceOp op) {
  const auto at = static_cast<std::size_t>(rank);
  outcome.statuses[at] =
      backend(rank).run(position_, outcome.tensors[at]->call(op), outcome.payloads[at]);
}

std::unique_ptr<NcclAllreduceFixture::Outcome> NcclAllreduceFixture::run(const Shapes& shapes,
                                                                         ReduceOp op) {
  auto outcome = begin(shapes);
  on_all_ranks([&](int rank) { run_on(rank, *outcome, op); });
  ++position_;
  return outcome;
}

bool NcclAllreduceFixture::expect_right(Outcome& outcome, ReduceOp op) {
  for (std::size_t rank = 0; rank < outcome.payloads.size(); ++rank) {
    expect_ok(outcome.statuses[rank]);
    if (!outcome.statuses[rank].ok()) return false;
    EXPECT_EQ(outcome.payloads[rank].device_result() != nullptr, outcome.by_nccl());
    expect_ok(outcome.tensors[rank]->take(outcome.payloads[rank], op, size_));
    outcome.tensors[rank]->expect(op, size_);
  }
  return outcome.by_nccl();
}

bool NcclAllreduceFixture::allreduce(const Shapes& shapes, ReduceOp op) {
  const auto outcome = run(shapes, op);
  return expect_right(*outcome, op);
}

}  // namespace elastic::collectives::nccl
