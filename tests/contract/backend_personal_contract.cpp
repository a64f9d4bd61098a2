// The collectives whose result differs by rank.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "backend_contract.hpp"
#include "base/reduce_ops.hpp"
#include "calls.hpp"
#include "collectives/backend/own_result.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives {
namespace {

using Counts = std::vector<std::uint64_t>;

/// Elements that rank `from` gives rank `to`: none, few or many.
std::uint64_t count_of(int from, int to, std::uint64_t scale) {
  return static_cast<std::uint64_t>((from * 3 + to * 5) % 4) * scale;
}

/// Values that tell which rank gave the block to which.
std::vector<double> block(int from, int to, std::uint64_t count) {
  std::vector<double> values;
  for (std::uint64_t i = 0; i < count; ++i) {
    values.push_back(from * 100'000.0 + to * 10'000.0 + static_cast<double>(i % 997));
  }
  return values;
}

void append(std::vector<double>& to, const std::vector<double>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

Call numbered(Call call, int size) {
  call.root = std::min(call.root, size - 1);
  return call;
}

}  // namespace

TEST_P(BackendContract, AlltoallGivesEachRankItsBlocks) {
  on_all_ranks([this](int rank) {
    std::uint64_t position = 0;
    for (const std::uint64_t scale : Counts{0, 1, 1001, 60'000 / kSlowness}) {
      Counts to;
      Counts from;
      std::vector<double> given;
      std::vector<double> expected;
      for (int peer = 0; peer < size(); ++peer) {
        to.push_back(count_of(rank, peer, scale));
        from.push_back(count_of(peer, rank, scale));
        append(given, block(rank, peer, to.back()));
        append(expected, block(peer, rank, from.back()));
      }
      const Call call = alltoall_call(DType::kF64, to);
      Payload mine = payload(call.sections[0], given);
      expect_ok(perform(rank, position++, call, mine));
      const OwnBlocks own = own_blocks(mine, rank, 8);
      EXPECT_EQ(own.counts, from);
      ASSERT_EQ(own.data.size(), expected.size() * 8);
      EXPECT_TRUE(values_of(own.data.data(), DType::kF64, expected.size()) == expected);
      EXPECT_FALSE(mine.own_block_complete());
    }
  });
}

TEST_P(BackendContract, AlltoallOfEqualBlocks) {
  on_all_ranks([this](int rank) {
    std::uint64_t position = 7;
    for (const std::uint64_t count : Counts{0, 1, 33, 50'001 / kSlowness}) {
      std::vector<double> given;
      std::vector<double> expected;
      for (int peer = 0; peer < size(); ++peer) {
        append(given, block(rank, peer, count));
        append(expected, block(peer, rank, count));
      }
      const Counts counts(static_cast<std::size_t>(size()), count);
      const Call call = alltoall_call(DType::kF32, counts, false);
      Payload mine = payload(call.sections[0], given);
      expect_ok(perform(rank, position++, call, mine));
      const OwnBlocks own = own_blocks(mine, rank, 4);
      EXPECT_EQ(own.counts, counts);
      ASSERT_EQ(own.data.size(), expected.size() * 4);
      EXPECT_TRUE(values_of(own.data.data(), DType::kF32, expected.size()) == expected);
    }
  });
}

TEST_P(BackendContract, GathersToEveryRoot) {
  on_all_ranks([this](int rank) {
    std::uint64_t position = 0;
    for (int root = 0; root < size(); ++root) {
      for (const std::uint64_t scale : Counts{0, 1, 9001}) {
        std::vector<double> expected;
        Counts counts;
        for (int peer = 0; peer < size(); ++peer) {
          counts.push_back(count_of(peer, root, scale));
          append(expected, block(peer, root, counts.back()));
        }
        const std::uint64_t count = counts[static_cast<std::size_t>(rank)];
        const Call call = gather_call(DType::kF64, count, root);
        Payload mine = payload(call.sections[0], block(rank, root, count));
        expect_ok(perform(rank, position++, call, mine));
        EXPECT_TRUE(std::ranges::equal(mine.counts(), counts));
        if (rank != root) continue;
        ASSERT_EQ(mine.data.size(), expected.size() * 8);
        EXPECT_TRUE(values_of(mine.data.data(), DType::kF64, expected.size()) == expected);
      }
    }
  });
}

TEST_P(BackendContract, ScattersFromEveryRoot) {
  on_all_ranks([this](int rank) {
    std::uint64_t position = 0;
    for (int root = 0; root < size(); ++root) {
      for (const std::uint64_t scale : Counts{0, 1, 9001}) {
        std::vector<double> given;
        Counts counts;
        for (int peer = 0; peer < size(); ++peer) {
          counts.push_back(count_of(root, peer, scale));
          append(given, block(root, peer, counts.back()));
        }
        if (rank != root) given.clear();
        const Call call = scatter_call(DType::kF64, rank == root ? counts : Counts(), root);
        Payload mine = payload(call.sections[0], given);
        expect_ok(perform(rank, position++, call, mine));
        const std::uint64_t count = counts[static_cast<std::size_t>(rank)];
        EXPECT_TRUE(std::ranges::equal(mine.counts(), counts));
        const OwnPart own = own_part(mine, rank, 8);
        ASSERT_EQ(own.data.size(), count * 8);
        EXPECT_TRUE(values_of(own.data.data(), DType::kF64, count) == block(root, rank, count));
      }
    }
  });
}

TEST_P(BackendContract, ScattersEqualBlocks) {
  on_all_ranks([this](int rank) {
    std::uint64_t position = 0;
    const int root = size() / 2;
    for (const std::uint64_t count : Counts{0, 1, 33, 5001}) {
      const Counts counts(static_cast<std::size_t>(size()), count);
      std::vector<double> given;
      for (int peer = 0; rank == root && peer < size(); ++peer) {
        append(given, block(root, peer, count));
      }
      const Call call = scatter_call(DType::kF32, rank == root ? counts : Counts(), root);
      Payload mine = payload(call.sections[0], given);
      expect_ok(perform(rank, position++, call, mine));
      const OwnPart own = own_part(mine, rank, 4);
      EXPECT_EQ(own.offset, count * static_cast<std::uint64_t>(rank));
      ASSERT_EQ(own.data.size(), count * 4);
      EXPECT_TRUE(values_of(own.data.data(), DType::kF32, count) == block(root, rank, count));
    }
  });
}

TEST_P(BackendContract, ReducesToEveryRoot) {
  on_all_ranks([this](int rank) {
    std::uint64_t position = 0;
    for (int root = 0; root < size(); ++root) {
      for (const ReduceOp op : kOps) {
        for (const std::size_t count : Counts{0, 1, 1001, 7001, 90'001 / kSlowness}) {
          // The operations differ in nothing but the kernel.
          if (op != ReduceOp::kSum && (root != size() / 2 || count != 1001)) continue;
          const Call call = reduce_call(DType::kI32, count, root, op);
          Payload mine = payload(call.sections[0], contribution(rank, count, DType::kI32));
          expect_ok(perform(rank, position++, call, mine));
          if (rank != root) continue;
          ASSERT_EQ(values_of(mine.data.data(), DType::kI32, count),
                    combined(size(), count, DType::kI32, op))
              << "op " << int(op) << " count " << count;
        }
      }
    }
  });
}

TEST_P(BackendContract, ScansInRankOrder) {
  on_all_ranks([this](int rank) {
    std::uint64_t position = 0;
    for (const bool exclusive : {false, true}) {
      for (const ReduceOp op : kOps) {
        for (const std::size_t count : Counts{0, 1, 1001, 90'001 / kSlowness}) {
          if (count > 1001 && op != ReduceOp::kSum) continue;  // the same for all operations
          const Call call = scan_call(DType::kI32, count, exclusive, op);
          Payload mine = payload(call.sections[0], contribution(rank, count, DType::kI32));
          expect_ok(perform(rank, position++, call, mine));
          const int contributors = rank + (exclusive ? 0 : 1);
          if (contributors < (is_logical(op) ? 2 : 1)) continue;  // the caller's matter
          std::vector<std::byte> own(count * 4);
          own_scan(mine, contributors, DType::kI32, op, count, own.data());
          ASSERT_EQ(values_of(own.data(), DType::kI32, count),
                    combined(contributors, count, DType::kI32, op))
              << "op " << int(op) << " count " << count;
        }
      }
    }
  });
}

/// Rule R1 of docs/atomicity.md: otherwise a rank could have a result that the others can neither
/// get nor make again.
TEST_P(BackendContract, NoRankEndsAPersonalCallBeforeAllHaveBegunIt) {
  if (size() < 2) return;
  const Counts none(static_cast<std::size_t>(size()), 0);
  const std::vector<Call> calls = {
      alltoall_call(DType::kF32, none, false), alltoall_call(DType::kF32, none),
      gather_call(DType::kF32, 0, 1),          numbered(scatter_call(DType::kF32, none, 1), size()),
      reduce_call(DType::kF32, 0, 1),          scan_call(DType::kF32, 0),
      scan_call(DType::kF32, 0, true)};
  const auto begun = world_.counters(calls.size() * static_cast<std::size_t>(size()));
  on_all_ranks([&](int rank) {
    for (std::size_t position = 0; position < calls.size(); ++position) {
      for (int late = 0; late < size(); ++late) {
        const std::size_t at =
            position * static_cast<std::size_t>(size()) + static_cast<std::size_t>(late);
        std::atomic<int>& late_has_begun = begun.get()[at];
        if (rank == late) ++late_has_begun;
        Payload mine;
        expect_ok(perform(rank, at, calls[position], mine));
        EXPECT_EQ(late_has_begun, 1) << "position " << position << " late " << late;
      }
    }
  });
}

}  // namespace elastic::collectives
