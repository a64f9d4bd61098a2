#include "backend_contract.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "calls.hpp"
#include "collectives/backend/own_result.hpp"
#include "collectives/plan/parts.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendContract);

namespace {

const std::size_t kCounts[] = {0, 1, 3, 1001, 9001};

std::string copy_of(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

}  // namespace

std::string name_of(const testing::TestParamInfo<std::tuple<Subject, int>>& info) {
  return std::get<Subject>(info.param).name + "_" + std::to_string(std::get<int>(info.param));
}

void BackendContract::on_all_ranks(const std::function<void(int)>& body) const {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size(); ++rank) {
    if (here(rank)) threads.emplace_back(body, rank);
  }
  for (auto& thread : threads) thread.join();
}

void BackendContract::abort_all() {
  for (auto& each : world_.backends) {
    if (each) each->abort();
  }
}

Status BackendContract::perform(int rank, std::uint64_t position, const Call& call,
                                Payload& payload) {
  Backend& its = backend(rank);
  Buffer input;
  input.resize(payload.data.size());
  std::ranges::copy(payload.data.bytes(), input.data());
  const Section& section = call.sections.front();
  const SmallCall small{section.dtype,    call.redop, input.bytes().first(bytes_of(section)),
                        call.fingerprint, call.kind,  call.root};
  const bool equal =
      std::ranges::adjacent_find(call.counts, std::not_equal_to()) == call.counts.end();
  const bool can_be_small = equal && !call.ragged && !call.exclusive && call.kind != Kind::kScan;
  const bool other = (static_cast<std::uint64_t>(rank) + position) % 2 == 0;
  if (!can_be_small || other || !its.takes(small)) return its.run(position, call, payload);
  payload.clear();
  return its.run_small(position, small, payload);
}

TEST_P(BackendContract, KnowsItsPlace) {
  for (int rank = 0; rank < size(); ++rank) {
    if (!here(rank)) continue;
    EXPECT_EQ(backend(rank).rank(), rank);
    EXPECT_EQ(backend(rank).size(), size());
  }
}

TEST_P(BackendContract, AllreducesEveryTypeAndOperation) {
  on_all_ranks([this](int rank) {
    std::uint64_t position = 0;
    for (const DType dtype : kDTypes) {
      for (const ReduceOp op : kOps) {
        if (!combines(op, dtype)) continue;
        for (const std::size_t count : kCounts) {
          if (count > 1001 && op != ReduceOp::kSum) continue;  // the same for all operations
          const Call call = allreduce_call(dtype, count, op);
          Payload mine = payload(call.sections[0], contribution(rank, count, dtype));
          expect_ok(backend(rank).run(position++, call, mine));
          ASSERT_EQ(values_of(mine.data.data(), dtype, count), combined(size(), count, dtype, op))
              << "dtype " << int(dtype) << " op " << int(op) << " count " << count;
        }
      }
    }
  });
}

TEST_P(BackendContract, AllreducesLargeData) {
  constexpr std::size_t kCount = 300'003;
  on_all_ranks([this](int rank) {
    const Call call = allreduce_call(DType::kF32, kCount);
    Payload mine = payload(call.sections[0], contribution(rank, kCount, DType::kF32));
    expect_ok(backend(rank).run(3, call, mine));
    EXPECT_TRUE(values_of(mine.data.data(), DType::kF32, kCount) ==
                combined(size(), kCount, DType::kF32, ReduceOp::kSum));
  });
}

/// Random bits have NaN, infinities and both zeros among them, and sums of them are rounded.
TEST_P(BackendContract, GivesAllRanksTheSameBits) {
  std::vector<std::string> results(static_cast<std::size_t>(size()));
  std::uint64_t position = 0;
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kProduct}) {
      for (const std::size_t count :
           {std::size_t{5}, std::size_t{7000}, std::size_t{40001 / kSlowness}}) {
        on_all_ranks([&](int rank) {
          std::mt19937_64 random(static_cast<std::uint64_t>(rank) + 17);
          Payload mine;
          mine.data.resize(count * size_of(dtype));
          for (auto& byte : mine.data.bytes()) byte = static_cast<std::byte>(random());
          expect_ok(backend(rank).run(position, allreduce_call(dtype, count, op), mine));
          results[static_cast<std::size_t>(rank)] = copy_of(mine.data);
        });
        ++position;
        world_.exchange(results);
        for (const auto& result : results) ASSERT_TRUE(result == results[0]);
      }
    }
  }
}

TEST_P(BackendContract, AllreducesSeveralTensorsAtOnce) {
  on_all_ranks([this](int rank) {
    Call call = allreduce_call(DType::kF32, 100);
    call.sections = {section(DType::kF32, 100, 0), section(DType::kI64, 3, 448),
                     section(DType::kF16, 5000, 512), section(DType::kU8, 0, 10560)};
    call.fingerprint.tensors = 4;
    Payload mine;
    mine.data.resize(10560);
    for (const Section& each : call.sections) {
      fill(mine.data, each, contribution(rank, each.count, each.dtype));
    }
    expect_ok(backend(rank).run(0, call, mine));
    for (const Section& each : call.sections) {
      EXPECT_EQ(values_of(mine.data.data() + each.offset, each.dtype, each.count),
                combined(size(), each.count, each.dtype, ReduceOp::kSum));
    }
  });
}

TEST_P(BackendContract, BroadcastsFromEveryRoot) {
  on_all_ranks([this](int rank) {
    std::uint64_t position = 10;
    for (int root = 0; root < size(); ++root) {
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, std::size_t{100'001 / kSlowness}}) {
        const Call call = broadcast_call(DType::kI32, count, root);
        Payload mine = payload(call.sections[0], contribution(rank, count, DType::kI32));
        expect_ok(perform(rank, position++, call, mine));
        EXPECT_EQ(values_of(mine.data.data(), DType::kI32, count),
                  contribution(root, count, DType::kI32));
      }
    }
  });
}

TEST_P(BackendContract, AllgathersBlocksOfDifferentSize) {
  on_all_ranks([this](int rank) {
    for (std::uint64_t position = 0; position < 6; ++position) {
      const auto count_of = [position](int of) {
        return static_cast<std::size_t>(of % 3) * static_cast<std::size_t>(position) * 997;
      };
      const Call call = allgather_call(DType::kF64, count_of(rank));
      Payload mine = payload(call.sections[0], contribution(rank, count_of(rank), DType::kF64));
      expect_ok(perform(rank, position, call, mine));
      std::vector<double> expected;
      std::vector<std::uint64_t> counts;
      for (int each = 0; each < size(); ++each) {
        counts.push_back(count_of(each));
        const auto block = contribution(each, count_of(each), DType::kF64);
        expected.insert(expected.end(), block.begin(), block.end());
      }
      EXPECT_TRUE(std::ranges::equal(mine.counts(), counts));
      ASSERT_EQ(mine.data.size(), expected.size() * 8);
      EXPECT_EQ(values_of(mine.data.data(), DType::kF64, expected.size()), expected);
    }
  });
}

TEST_P(BackendContract, ReduceScattersParts) {
  on_all_ranks([this](int rank) {
    const auto parts = static_cast<std::size_t>(size());
    const auto me = static_cast<std::size_t>(rank);
    std::uint64_t position = 0;
    for (const ReduceOp op : kOps) {
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{50'003 / kSlowness}}) {
        if (count > 100 && op != ReduceOp::kSum) continue;  // the same for all operations
        const Call call = reduce_scatter_call(DType::kI32, count, op);
        Payload mine = payload(call.sections[0], contribution(rank, count, DType::kI32));
        expect_ok(perform(rank, position++, call, mine));
        const auto whole = combined(size(), count, DType::kI32, op);
        const std::size_t begin = plan::part_begin(count, parts, me);
        const std::size_t end = plan::part_begin(count, parts, me + 1);
        ASSERT_EQ(mine.counts().size(), parts);
        EXPECT_EQ(mine.counts()[me], end - begin);
        const OwnPart own = own_part(mine, rank, 4);
        EXPECT_EQ(own.offset, begin);
        ASSERT_EQ(own.data.size(), (end - begin) * 4);
        EXPECT_EQ(values_of(own.data.data(), DType::kI32, end - begin),
                  std::vector<double>(whole.begin() + static_cast<std::ptrdiff_t>(begin),
                                      whole.begin() + static_cast<std::ptrdiff_t>(end)))
            << "op " << int(op) << " count " << count;
      }
    }
  });
}

TEST_P(BackendContract, TransfersFromDonorsToReceivers) {
  if (size() < 2) return;
  constexpr std::size_t kBytes = 1'000'001 / kSlowness;
  Call call;
  call.kind = Kind::kTransfer;
  for (int rank = 0; rank < size(); ++rank) {
    (rank % 3 == 1 ? call.receivers : call.donors).push_back(rank);
  }
  call.sections = {section(DType::kU8, kBytes)};
  on_all_ranks([&](int rank) {
    const auto state = contribution(0, kBytes, DType::kU8);
    Payload mine = payload(call.sections[0], state);
    if (rank % 3 == 1) std::memset(mine.data.data(), 0xff, kBytes);
    expect_ok(backend(rank).run(0, call, mine));
    EXPECT_TRUE(values_of(mine.data.data(), DType::kU8, kBytes) == state);
  });
}

/// Donors give what lies in several places; it arrives in one. One that is asked for it afterwards
/// hands it over in one piece, too.
TEST_P(BackendContract, TransfersFromWhereItLies) {
  if (size() < 3) return;
  constexpr std::size_t kFirst = 100;
  constexpr std::size_t kSecond = 300'001;
  Call call;
  call.kind = Kind::kTransfer;
  call.sections = {section(DType::kU8, kFirst), section(DType::kU8, kSecond)};
  call.sections[1].offset = aligned(kFirst);
  for (int rank = 0; rank < size(); ++rank) {
    (rank == 1 ? call.receivers : call.donors).push_back(rank);
  }
  const auto first = contribution(0, kFirst, DType::kU8);
  const auto second = contribution(1, kSecond, DType::kU8);
  const auto arrived = [&](const Payload& whole) {
    EXPECT_TRUE(values_of(whole.data.data(), DType::kU8, kFirst) == first);
    EXPECT_TRUE(values_of(whole.data.data() + aligned(kFirst), DType::kU8, kSecond) == second);
  };
  on_all_ranks([&](int rank) {
    Payload one = payload(section(DType::kU8, kFirst), first);
    Payload other = payload(section(DType::kU8, kSecond), second);
    Backend::Parcel parcel;
    Payload& mine = parcel.payload;
    if (rank == 1) {
      mine.data.resize(aligned(kFirst) + kSecond);
    } else {
      mine.form = StateSections{{one.data.bytes(), other.data.bytes()}};
    }
    expect_ok(backend(rank).run(0, call, mine));
    if (rank == 1) arrived(mine);
    if (rank == 2) parcel = {};
    // The handover is a later operation here; a real one comes in a later view.
    expect_ok(backend(rank).hand_over(1, {{0}, {2}}, parcel));
    if (rank == 2) arrived(mine);
  });
}

/// The rule on which the recovery rests.
TEST_P(BackendContract, CompletesNowhereBeforeAllHaveEntered) {
  std::vector<Call> calls{barrier_call(),
                          allreduce_call(DType::kF32, 0),
                          allreduce_call(DType::kF32, 10),
                          allreduce_call(DType::kF32, 5'000),
                          allreduce_call(DType::kF32, 100'000),
                          broadcast_call(DType::kF32, 10, 0),
                          broadcast_call(DType::kF32, 100'000, size() - 1),
                          allgather_call(DType::kF32, 10),
                          reduce_scatter_call(DType::kF32, 100)};
  constexpr int kRounds = 4;
  const std::size_t positions = calls.size() * kRounds;
  const auto counters = world_.counters(positions);
  std::atomic<int>* const entered = counters.get();
  on_all_ranks([&](int rank) {
    std::mt19937_64 random(static_cast<std::uint64_t>(rank));
    for (std::uint64_t position = 0; position < positions; ++position) {
      const Call& call = calls[position % calls.size()];
      Payload mine;
      mine.data.resize(400'000);
      for (std::uint64_t i = random() % 4; i > 0; --i) std::this_thread::yield();
      ++entered[position];
      expect_ok(backend(rank).run(position, call, mine));
      EXPECT_EQ(entered[position].load(), size()) << "position " << position;
    }
  });
}

TEST_P(BackendContract, AbortEndsAWait) {
  for (const Call& call : {allreduce_call(DType::kF32, 10), allreduce_call(DType::kF32, 200'000),
                           barrier_call(), allgather_call(DType::kF32, 10)}) {
    world_ = std::get<Subject>(GetParam()).make(size());
    const auto entered = world_.counters(1);
    std::thread aborting([&] {
      while (entered[0] < size() - 1) std::this_thread::yield();
      abort_all();
    });
    on_all_ranks([&](int rank) {
      // The last rank enters only after the abort, so that no rank can complete the call.
      if (rank == size() - 1) {
        aborting.join();
      } else {
        ++entered[0];
      }
      Payload mine;
      mine.data.resize(800'000);
      EXPECT_EQ(backend(rank).run(0, call, mine).code(), Code::kAborted);
      EXPECT_EQ(backend(rank).run(1, call, mine).code(), Code::kAborted);
    });
    if (aborting.joinable()) aborting.join();
  }
}

TEST_P(BackendContract, LossOfAPeerIsNoticed) {
  if (size() < 2) return;
  on_all_ranks([&](int rank) {
    Payload mine;
    mine.data.resize(800'000);
    const Call call = allreduce_call(DType::kF32, 200'000);
    Status status = backend(rank).run(0, call, mine);
    if (rank == size() - 1) {
      expect_ok(status);
      world_.backends.back().reset();
      return;
    }
    // The loss may be seen before the operation that all have entered is complete everywhere.
    if (status.ok()) status = backend(rank).run(1, call, mine);
    EXPECT_EQ(status.code(), Code::kPeerLost) << status.message();
    EXPECT_EQ(status.peer(), size() - 1);
  });
}

TEST_P(BackendContract, HandsOverResults) {
  if (size() < 2) return;
  // Even ranks have the result; each gives it to the next, and rank 0 to the last as well.
  Backend::HandoverPairs pairs;
  for (int rank = 1; rank < size(); rank += 2) {
    pairs.senders.push_back(rank == size() - 1 ? 0 : rank - 1);
    pairs.takers.push_back(rank);
  }
  on_all_ranks([&](int rank) {
    Backend::Parcel parcel;
    const transport::Fingerprint called = allreduce_call(DType::kF32, 300'000).fingerprint;
    if (rank % 2 == 0) {
      parcel.fingerprint = called;
      parcel.error = "an error";
      parcel.payload =
          payload(section(DType::kF32, 300'000), contribution(0, 300'000, DType::kF32));
      parcel.payload.form = Blocks{{1, 2, 3}, true};
    }
    expect_ok(backend(rank).hand_over(41, pairs, parcel));
    EXPECT_EQ(parcel.fingerprint, called);
    EXPECT_EQ(parcel.error, "an error");
    EXPECT_TRUE(std::ranges::equal(parcel.payload.counts(), std::vector<std::uint64_t>{1, 2, 3}));
    EXPECT_TRUE(parcel.payload.own_block_complete());
    ASSERT_EQ(parcel.payload.data.size(), 1'200'000U);
    EXPECT_TRUE(values_of(parcel.payload.data.data(), DType::kF32, 300'000) ==
                contribution(0, 300'000, DType::kF32));
    Payload none;
    expect_ok(backend(rank).run(42, barrier_call(), none));
  });
}

}  // namespace elastic::collectives
