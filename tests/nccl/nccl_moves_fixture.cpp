#include "nccl/nccl_moves_fixture.hpp"

namespace elastic::collectives::nccl {

Move NcclMovesFixture::of(Kind kind) const {
  return kind == Kind::kBroadcast   ? broadcast(3000, 1)
         : kind == Kind::kAllgather ? allgather(alike(3000))
                                    : reduce_scatter(3001, ReduceOp::kAverage);
}

std::unique_ptr<NcclMovesFixture::Outcome> NcclMovesFixture::begin(const Move& move) {
  auto outcome = std::make_unique<Outcome>();
  outcome->payloads.resize(static_cast<std::size_t>(size_));
  outcome->statuses.resize(static_cast<std::size_t>(size_));
  for (int rank = 0; rank < size_; ++rank) {
    outcome->tensors.push_back(std::make_unique<GpuMove>(gpu_, rank, move));
    outcome->tensors.back()->give(outcome->payloads[static_cast<std::size_t>(rank)]);
  }
  return outcome;
}

void NcclMovesFixture::run_on(int rank, Outcome& outcome) {
  const auto at = static_cast<std::size_t>(rank);
  outcome.statuses[at] =
      backend(rank).run(position_, outcome.tensors[at]->call(), outcome.payloads[at]);
}

void NcclMovesFixture::run(Outcome& outcome) {
  on_all_ranks([&](int rank) { run_on(rank, outcome); });
  ++position_;
}

bool NcclMovesFixture::expect_right(Outcome& outcome) {
  for (std::size_t rank = 0; rank < outcome.payloads.size(); ++rank) {
    expect_ok(outcome.statuses[rank]);
    if (!outcome.statuses[rank].ok()) return false;
    Payload& payload = outcome.payloads[rank];
    EXPECT_EQ(payload.device_result() != nullptr, outcome.by_nccl());
    EXPECT_FALSE(payload.own_block_complete());
    expect_ok(outcome.tensors[rank]->take(payload));
    outcome.tensors[rank]->expect_right(payload);
  }
  return outcome.by_nccl();
}

bool NcclMovesFixture::perform(const Move& move) {
  const auto outcome = begin(move);
  run(*outcome);
  return expect_right(*outcome);
}

}  // namespace elastic::collectives::nccl
