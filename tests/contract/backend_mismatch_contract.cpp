// Ranks that call different things: all are told alike, and the backend stays usable.
#include <cstring>
#include <string>
#include <vector>

#include "backend_contract.hpp"
#include "calls.hpp"

namespace elastic::collectives {

namespace {

struct Mistake {
  const char* what;
  Call right;
  Call wrong;
};

std::vector<Mistake> mistakes() {
  Call group = allreduce_call(DType::kF32, 100);
  group.fingerprint.detail = 77;
  return {
      {"count", allreduce_call(DType::kF32, 10), allreduce_call(DType::kF32, 11)},
      {"large count", allreduce_call(DType::kF32, 300'000), allreduce_call(DType::kF32, 299'000)},
      {"algorithm", allreduce_call(DType::kF32, 10), allreduce_call(DType::kF32, 300'000)},
      {"slots and doubling", allreduce_call(DType::kF32, 10), allreduce_call(DType::kF32, 9'000)},
      {"doubling and ring", allreduce_call(DType::kF32, 9'000),
       allreduce_call(DType::kF32, 90'000)},
      {"nothing", allreduce_call(DType::kF32, 0), allreduce_call(DType::kF32, 1)},
      {"dtype", allreduce_call(DType::kF32, 10), allreduce_call(DType::kI32, 10)},
      {"op", allreduce_call(DType::kF32, 10), allreduce_call(DType::kF32, 10, ReduceOp::kMax)},
      {"bits", allreduce_call(DType::kI32, 10, ReduceOp::kBitAnd),
       allreduce_call(DType::kI32, 10, ReduceOp::kLogicalAnd)},
      {"Adasum", allreduce_call(DType::kF32, 10),
       allreduce_call(DType::kF32, 10, ReduceOp::kAdasum)},
      {"Adasum of other sizes", allreduce_call(DType::kF32, 300'000, ReduceOp::kAdasum),
       allreduce_call(DType::kF32, 299'000, ReduceOp::kAdasum)},
      {"Adasums", allreduce_call(DType::kF32, 10, ReduceOp::kAdasum),
       allreduce_call(DType::kF32, 10, ReduceOp::kHierarchicalAdasum)},
      {"hierarchical Adasum", allreduce_call(DType::kF32, 10),
       allreduce_call(DType::kF32, 10, ReduceOp::kHierarchicalAdasum)},
      {"hierarchical Adasum of other sizes",
       allreduce_call(DType::kF32, 300'000, ReduceOp::kHierarchicalAdasum),
       allreduce_call(DType::kF32, 299'000, ReduceOp::kHierarchicalAdasum)},
      {"hierarchical Adasum of other shares",
       allreduce_call(DType::kF32, 300'000, ReduceOp::kHierarchicalAdasum),
       allreduce_call(DType::kF32, 10, ReduceOp::kHierarchicalAdasum)},
      {"kind", allreduce_call(DType::kF32, 10), barrier_call()},
      {"kinds", broadcast_call(DType::kF32, 10, 0), allgather_call(DType::kF32, 10)},
      {"scatter", reduce_scatter_call(DType::kF32, 10), allreduce_call(DType::kF32, 10)},
      {"root", broadcast_call(DType::kF32, 10, 0), broadcast_call(DType::kF32, 10, 1)},
      {"shapes", allreduce_call(DType::kF32, 100), group},
      {"reduce and allreduce", reduce_call(DType::kF32, 10, 0), allreduce_call(DType::kF32, 10)},
      {"root of a reduce", reduce_call(DType::kF32, 90'000, 0),
       reduce_call(DType::kF32, 90'000, 1)},
      {"root of a gather", gather_call(DType::kF32, 10, 0), gather_call(DType::kF32, 10, 1)},
      {"gather and allgather", gather_call(DType::kF32, 10, 1), allgather_call(DType::kF32, 10)},
      {"gather and barrier", gather_call(DType::kF32, 0, 1), barrier_call()},
      {"scan and exscan", scan_call(DType::kF32, 10), scan_call(DType::kF32, 10, true)},
      {"scan and its count", scan_call(DType::kF32, 10), scan_call(DType::kF32, 90'000)},
  };
}

}  // namespace

TEST_P(BackendContract, MismatchEndsOnAllRanksAndHarmsNothing) {
  if (size() < 2) return;
  std::uint64_t position = 0;
  for (const Mistake& mistake : mistakes()) {
    for (int culprit = 0; culprit < size(); ++culprit) {
      std::vector<std::string> messages(static_cast<std::size_t>(size()));
      on_all_ranks([&](int rank) {
        const Call& call = rank == culprit ? mistake.wrong : mistake.right;
        Payload mine;
        mine.data.resize(1'200'000);
        std::memset(mine.data.data(), 0, mine.data.size());
        const Status status = backend(rank).run(position, call, mine);
        EXPECT_EQ(status.code(), Code::kMismatch) << mistake.what << ": " << status.message();
        messages[static_cast<std::size_t>(rank)] = status.message();
        // Usable afterwards.
        const Call next = allreduce_call(DType::kI32, 1000);
        Payload good = payload(next.sections[0], contribution(rank, 1000, DType::kI32));
        expect_ok(backend(rank).run(position + 1, next, good));
        EXPECT_EQ(values_of(good.data.data(), DType::kI32, 1000),
                  combined(size(), 1000, DType::kI32, ReduceOp::kSum));
      });
      position += 2;
      world_.exchange(messages);
      for (const auto& message : messages) EXPECT_EQ(message, messages[0]) << mistake.what;
      EXPECT_NE(messages[0].find("rank " + std::to_string(culprit)), std::string::npos)
          << messages[0];
      EXPECT_NE(messages[0].find(describe(mistake.wrong.fingerprint)), std::string::npos)
          << messages[0];
      EXPECT_NE(messages[0].find(describe(mistake.right.fingerprint)), std::string::npos)
          << messages[0];
      if (HasFailure()) return;
    }
  }
}

TEST_P(BackendContract, EveryRankCallsSomethingElse) {
  if (size() < 2) return;
  std::vector<std::string> messages(static_cast<std::size_t>(size()));
  on_all_ranks([&](int rank) {
    Payload mine;
    mine.data.resize(400'000);
    const Call call = allreduce_call(DType::kU8, 100 + static_cast<std::size_t>(rank) * 50'000);
    EXPECT_EQ(backend(rank).run(5, call, mine).code(), Code::kMismatch);
    expect_ok(backend(rank).run(6, barrier_call(), mine));
  });
}

TEST_P(BackendContract, KnownMismatchIsReportedAlike) {
  on_all_ranks([this](int rank) {
    Call call;
    call.kind = Kind::kMismatch;
    call.error = "tensor w: rank 0 has 3 elements, rank 1 has 4";
    Payload mine;
    const Status status = backend(rank).run(0, call, mine);
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_EQ(status.message(), call.error);
    expect_ok(backend(rank).run(1, barrier_call(), mine));
  });
}

/// A rank knows by it that every other rank has the error.
TEST_P(BackendContract, AnErrorIsSettledWhenAllInTheCallHaveIt) {
  const auto have_error = world_.counters(1);
  const auto have_settled = world_.counters(1);
  std::vector<int> all;
  for (int rank = 0; rank < size(); ++rank) all.push_back(rank);
  const std::vector<int> outer = size() > 1 ? std::vector<int>{0, size() - 1} : all;
  on_all_ranks([&](int rank) {
    Call call;
    call.kind = Kind::kMismatch;
    call.error = "they differ";
    Payload mine;
    EXPECT_EQ(backend(rank).run(0, call, mine).code(), Code::kMismatch);
    ++have_error[0];
    expect_ok(backend(rank).settle_error(0, all));
    EXPECT_EQ(have_error[0], size());
    // Some of the ranks, as in a later view.
    if (rank == outer.front() || rank == outer.back()) {
      ++have_settled[0];
      expect_ok(backend(rank).settle_error(1, outer));
      EXPECT_EQ(have_settled[0], static_cast<int>(outer.size()));
    }
    expect_ok(backend(rank).run(2, barrier_call(), mine));
  });
}

}  // namespace elastic::collectives
