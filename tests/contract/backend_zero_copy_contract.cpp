// The contract of backends for tensors in place, and for small calls.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "backend_contract.hpp"
#include "calls.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives {

namespace {

/// A tensor of one rank, in place on odd ranks.
class Tensor {
 public:
  Tensor(const World& world, int rank, DType dtype, std::size_t count)
      : dtype_(dtype),
        count_(count),
        in_place_(rank % 2 == 1),
        input_(world.allocate(rank, count * size_of(dtype))),
        output_(world.allocate(rank, count * size_of(dtype))),
        zero_copy_{dtype_, count_, input_.get(), in_place_ ? input_.get() : output_.get()} {
    Buffer values;
    values.resize(count * size_of(dtype));
    fill(values, section(dtype, count), contribution(rank, count, dtype));
    std::copy_n(values.data(), values.size(), input_.get());
  }
  /// For as long as this lives.
  ZeroCopyTensors zero_copy() const { return {{&zero_copy_, 1}}; }
  std::vector<double> input() const { return values_of(input_.get(), dtype_, count_); }
  std::vector<double> result() const {
    return values_of((in_place_ ? input_ : output_).get(), dtype_, count_);
  }
  /// Overwrites the tensor, as a caller may after its call has returned.
  void scribble() {
    for (auto* const memory : {input_.get(), output_.get()}) {
      std::fill_n(memory, count_ * size_of(dtype_), std::byte{0x55});
    }
  }

 private:
  DType dtype_;
  std::size_t count_;
  bool in_place_;
  std::shared_ptr<std::byte> input_;
  std::shared_ptr<std::byte> output_;
  ZeroCopyTensor zero_copy_;
};

Call zero_copy_call(DType dtype, std::size_t count, ReduceOp op = ReduceOp::kSum) {
  Call call = allreduce_call(dtype, count, op);
  call.sections.clear();
  return call;
}

/// `tensor`, with room to undo what is done to it.
Payload zero_copy_payload(Tensor& tensor, Buffer& undo) {
  Payload mine;
  mine.form = tensor.zero_copy();
  mine.undo = &undo;
  return mine;
}

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendZeroCopyContract);

TEST_P(BackendZeroCopyContract, AllreducesTensorsWhereTheyLie) {
  on_all_ranks([this](int rank) {
    std::uint64_t position = 0;
    Buffer undo;
    for (const DType dtype : kDTypes) {
      for (const ReduceOp op : kOps) {
        if (!combines(op, dtype)) continue;
        if (op == ReduceOp::kAverage) continue;  // below
        for (const std::size_t count : {1UL, 1001UL, 30'011UL / kSlowness}) {
          if (count > 1001 && op != ReduceOp::kSum) continue;  // the same for all operations
          Tensor tensor(world_, rank, dtype, count);
          Payload mine = zero_copy_payload(tensor, undo);
          expect_ok(backend(rank).run(position++, zero_copy_call(dtype, count, op), mine));
          expect_ok(backend(rank).settle());
          ASSERT_EQ(tensor.result(), combined(size(), count, dtype, op))
              << "dtype " << int(dtype) << " op " << int(op) << " count " << count;
        }
      }
    }
  });
}

TEST_P(BackendZeroCopyContract, TakesTheMeanAndMixesWithPackedData) {
  constexpr std::size_t kLarge = 20'001;
  constexpr std::size_t kSmall = 77;
  Call call = allreduce_call(DType::kF64, kSmall, ReduceOp::kAverage);
  call.fingerprint.count = kLarge + kSmall;
  std::vector<double> mean = combined(size(), kLarge, DType::kF64, ReduceOp::kSum);
  for (double& value : mean) value /= size();
  on_all_ranks([&](int rank) {
    Tensor tensor(world_, rank, DType::kF64, kLarge);
    Buffer undo;
    Payload mine = payload(call.sections[0], contribution(rank, kSmall, DType::kF64));
    mine.form = tensor.zero_copy();
    mine.undo = &undo;
    expect_ok(backend(rank).run(0, call, mine));
    EXPECT_EQ(tensor.result(), mean);
    expect_ok(backend(rank).settle());
    // The caller of the backend divides packed data.
    EXPECT_EQ(values_of(mine.data.data(), DType::kF64, kSmall),
              combined(size(), kSmall, DType::kF64, ReduceOp::kSum));
  });
}

/// No rank may release its tensor before all ranks have the result, whatever happens.
TEST_P(BackendZeroCopyContract, SettlesNowhereBeforeAllHaveTheResult) {
  constexpr std::size_t kCount = 10'000;
  if (size() < 2) return;
  std::atomic<int> have_run{0};
  on_all_ranks([&](int rank) {
    Tensor tensor(world_, rank, DType::kI32, kCount);
    Buffer undo;
    Payload mine = zero_copy_payload(tensor, undo);
    expect_ok(backend(rank).run(0, zero_copy_call(DType::kI32, kCount), mine));
    ++have_run;
    if (rank == 0) {
      // Does not settle.
      while (have_run < size()) std::this_thread::yield();
      abort_all();
    } else {
      EXPECT_EQ(backend(rank).settle().code(), Code::kAborted);
    }
    EXPECT_EQ(tensor.result(), combined(size(), kCount, DType::kI32, ReduceOp::kSum));
  });
}

/// A while after all ranks have entered the operation: tests sweep the moment of a failure over it,
/// and there is no event in its midst to wait for.
void wait_until_amidst(const std::atomic<int>& entered, int ranks, int delay_us) {
  while (entered < ranks) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
}

TEST_P(BackendZeroCopyContract, LeavesTheInputBehindWhenItFails) {
  constexpr std::size_t kCount = 200'000 / kSlowness;
  if (size() < 2) return;
  for (int delay_us = 0; delay_us < 1000; delay_us += 250) {
    world_ = std::get<Subject>(GetParam()).make(size());
    std::atomic<int> entered{0};
    std::thread breaks([&] {
      wait_until_amidst(entered, size(), delay_us);
      abort_all();
    });
    on_all_ranks([&](int rank) {
      Tensor tensor(world_, rank, DType::kI32, kCount);
      Buffer undo;
      Payload mine = zero_copy_payload(tensor, undo);
      ++entered;
      const Status status = backend(rank).run(0, zero_copy_call(DType::kI32, kCount), mine);
      if (status.ok()) {
        EXPECT_EQ(tensor.result(), combined(size(), kCount, DType::kI32, ReduceOp::kSum));
        (void)backend(rank).settle();  // others may still read the tensor
      } else {
        EXPECT_EQ(status.code(), Code::kAborted);
        EXPECT_EQ(tensor.input(), contribution(rank, kCount, DType::kI32));
      }
    });
    breaks.join();
  }
}

/// Rank 0 gives up before the others, and its caller then overwrites its tensor.
TEST_P(BackendZeroCopyContract, WhatOneCallerDoesAfterAFailureHurtsNoOther) {
  constexpr std::size_t kCount = 200'000 / kSlowness;
  if (size() < 2) return;
  for (int delay_us = 0; delay_us < 1000; delay_us += 125) {
    world_ = std::get<Subject>(GetParam()).make(size());
    std::atomic<int> entered{0};
    std::atomic<bool> scribbled{false};
    std::thread breaks([&] {
      wait_until_amidst(entered, size(), delay_us);
      backend(0).abort();
      while (!scribbled) std::this_thread::yield();
      abort_all();
    });
    on_all_ranks([&](int rank) {
      Tensor tensor(world_, rank, DType::kI32, kCount);
      Buffer undo;
      Payload mine = zero_copy_payload(tensor, undo);
      ++entered;
      Status status = backend(rank).run(0, zero_copy_call(DType::kI32, kCount), mine);
      const auto expected = combined(size(), kCount, DType::kI32, ReduceOp::kSum);
      if (status.ok()) {
        EXPECT_EQ(tensor.result(), expected);
        status = backend(rank).settle();
        EXPECT_EQ(tensor.result(), expected);
      } else {
        EXPECT_EQ(status.code(), Code::kAborted) << status.message();
        EXPECT_EQ(tensor.input(), contribution(rank, kCount, DType::kI32));
      }
      if (rank != 0) return;
      tensor.scribble();
      scribbled = true;
    });
    breaks.join();
  }
}

TEST_P(BackendZeroCopyContract, LeavesTheInputBehindAfterAMismatch) {
  constexpr std::size_t kCount = 30'000;
  if (size() < 2) return;
  on_all_ranks([&](int rank) {
    Tensor tensor(world_, rank, DType::kI32, kCount);
    Buffer undo;
    Payload mine = zero_copy_payload(tensor, undo);
    const ReduceOp op = rank == size() - 1 ? ReduceOp::kMax : ReduceOp::kSum;
    EXPECT_EQ(backend(rank).run(0, zero_copy_call(DType::kI32, kCount, op), mine).code(),
              Code::kMismatch);
    EXPECT_EQ(tensor.input(), contribution(rank, kCount, DType::kI32));
    Payload again = zero_copy_payload(tensor, undo);
    expect_ok(backend(rank).run(1, zero_copy_call(DType::kI32, kCount), again));
    expect_ok(backend(rank).settle());
    EXPECT_EQ(tensor.result(), combined(size(), kCount, DType::kI32, ReduceOp::kSum));
  });
}

/// Some ranks make the small call, others the same one by `run`.
TEST_P(BackendZeroCopyContract, SmallCallsAreTheSameAsOthers) {
  on_all_ranks([this](int rank) {
    Payload none;
    expect_ok(backend(rank).run(0, barrier_call(), none));
    std::uint64_t position = 1;
    for (const DType dtype : kDTypes) {
      for (const ReduceOp op : kOps) {
        if (!combines(op, dtype)) continue;
        for (const std::size_t count : {0UL, 1UL, 3UL, 1001UL}) {
          const Call call = allreduce_call(dtype, count, op);
          Payload mine = payload(call.sections[0], contribution(rank, count, dtype));
          const auto expected = combined(size(), count, dtype, op);
          const bool small = (static_cast<std::uint64_t>(rank) + position) % 2 == 0;
          const SmallCall as_small{dtype, op, mine.data.bytes(), call.fingerprint};
          if (small && backend(rank).takes(as_small)) {
            Payload result;
            expect_ok(backend(rank).run_small(position, as_small, result));
            ASSERT_EQ(values_of(result.data.data(), dtype, count), expected);
          } else {
            expect_ok(backend(rank).run(position, call, mine));
            ASSERT_EQ(values_of(mine.data.data(), dtype, count), expected);
          }
          ++position;
        }
      }
    }
  });
}

TEST_P(BackendZeroCopyContract, SmallCallsThatDoNotMatchAreNamed) {
  if (size() < 2) return;
  on_all_ranks([this](int rank) {
    Payload none;
    expect_ok(backend(rank).run(0, barrier_call(), none));
    std::uint64_t position = 1;
    // The different calls of the last rank, small and not small.
    for (const Call& other :
         {allreduce_call(DType::kF32, 4), allreduce_call(DType::kF32, 50'000), barrier_call()}) {
      const Call call = rank == size() - 1 ? other : allreduce_call(DType::kI32, 4);
      Payload mine;
      mine.data.resize(200'000);
      Payload result;
      const SmallCall as_small{DType::kI32, ReduceOp::kSum, mine.data.bytes().first(16),
                               call.fingerprint};
      const bool small = rank != size() - 1 && backend(rank).takes(as_small);
      const Status status = small ? backend(rank).run_small(position, as_small, result)
                                  : backend(rank).run(position, call, mine);
      EXPECT_EQ(status.code(), Code::kMismatch) << status.message();
      EXPECT_NE(status.message().find("rank " + std::to_string(size() - 1)), std::string::npos)
          << status.message();
      ++position;
    }
    const Call last = allreduce_call(DType::kI32, 4);
    Payload mine = payload(last.sections[0], contribution(rank, 4, DType::kI32));
    expect_ok(backend(rank).run(position, last, mine));
    EXPECT_EQ(values_of(mine.data.data(), DType::kI32, 4),
              combined(size(), 4, DType::kI32, ReduceOp::kSum));
  });
}

TEST_P(BackendZeroCopyContract, AbortEndsAWaitForEagerMessages) {
  if (size() < 2) return;
  std::atomic<int> waiting{0};
  on_all_ranks([&](int rank) {
    Payload none;
    expect_ok(backend(rank).run(0, barrier_call(), none));
    Buffer data;
    data.resize(16);
    const Call call = allreduce_call(DType::kI32, 4);
    const SmallCall as_small{DType::kI32, ReduceOp::kSum, data.bytes(), call.fingerprint};
    if (!backend(rank).takes(as_small)) return;
    if (rank == size() - 1) {
      while (waiting < size() - 1) std::this_thread::yield();
      return abort_all();
    }
    ++waiting;
    Payload result;
    EXPECT_EQ(backend(rank).run_small(1, as_small, result).code(), Code::kAborted);
  });
}

}  // namespace elastic::collectives
