// Calls that are right by themselves, but not together with those of other ranks.
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

#include "integration/programs/bad_calls.hpp"

namespace elastic::bad_calls {

namespace {

bool odd() {
  return elastic::rank() % 2 == 1;
}

}  // namespace

void different_calls() {
  std::vector<float> floats(1000, 1.0F);
  std::vector<float> more(200000, 1.0F);
  std::vector<int> ints(1000, 1);
  const auto expect = [](const std::string& what, const std::vector<std::string>& words,
                         const std::function<void()>& call) {
    must_fail(what, ErrorCode::kMismatch, words, call);
    must_go_on();
  };
  expect("counts", {"allreduce of 1000 f32", "allreduce of 200000 f32", "rank 0", "rank 1"},
         [&] { elastic::allreduce(std::span<float>(odd() ? more : floats)); });
  expect("dtypes", {"1000 f32", "1000 i32"}, [&] {
    odd() ? elastic::allreduce(std::span<int>(ints)) : elastic::allreduce(std::span<float>(floats));
  });
  expect("operators", {"sum", "max"}, [&] {
    elastic::allreduce(std::span<float>(floats), odd() ? ReduceOp::kMax : ReduceOp::kSum);
  });
  expect("kinds", {"allreduce", "barrier"},
         [&] { odd() ? elastic::barrier() : elastic::allreduce(std::span<float>(floats)); });
  expect("one rank only", {"rank 0", "broadcast", "allgather"}, [&] {
    if (elastic::rank() == 1) {
      elastic::allgather(std::span<const float>(floats));
    } else {
      elastic::broadcast(std::span<float>(floats), 0);
    }
  });
  expect("roots", {"broadcast", "from rank 0", "from rank 1", "broadcast_from names a worker"},
         [&] { elastic::broadcast(std::span<float>(floats), odd() ? 1 : 0); });
  expect("groups", {"2 tensors", "3 tensors"}, [&] {
    std::vector<TensorView> group;
    for (std::size_t i = 0; i < (odd() ? 3U : 2U); ++i) {
      group.push_back(elastic::view(std::span<float>(floats).subspan(i, 1)));
    }
    elastic::grouped_allreduce(group);
  });
  expect("scattered counts", {"reduce_scatter", "1000", "200000"},
         [&] { elastic::reduce_scatter(std::span<const float>(odd() ? more : floats)); });
  expect("gathered dtypes", {"allgather of f32", "allgather of i32"}, [&] {
    if (odd()) {
      elastic::allgather(std::span<const int>(ints));
    } else {
      elastic::allgather(std::span<const float>(floats));
    }
  });
  for (const float value : floats) {
    if (value != 1.0F) fail("a failed call changed its input");
  }
}

void different_tensors() {
  for (int round = 0; round < 3; ++round) {
    std::vector<float> floats(1000, 1.0F);
    std::vector<float> more(2000, 1.0F);
    std::vector<int> ints(50, 1);
    // In the second round the name is known, with the shape of rank 0's last success.
    elastic::Work good = elastic::allreduce_async("good", std::span<int>(ints));
    elastic::Work bad = elastic::allreduce_async("bad", std::span<float>(odd() ? more : floats));
    must_fail("named counts", ErrorCode::kMismatch, {"'bad'", "rank 0", "rank 1", "1000", "2000"},
              [&] { bad.wait(); });
    must_fail("named counts again", ErrorCode::kMismatch, {"'bad'"}, [&] { bad.wait(); });
    good.wait();
    if (ints[49] != elastic::size()) fail("another tensor suffered");
    bad = elastic::allreduce_async("bad", std::span<float>(floats),
                                   odd() ? ReduceOp::kSum : ReduceOp::kMin);
    must_fail("named operators", ErrorCode::kMismatch, {"'bad'", "sum", "min"},
              [&] { bad.wait(); });
    elastic::allreduce_async("bad", std::span<float>(floats)).wait();
    if (floats[999] != static_cast<float>(elastic::size())) fail("the name is spoiled");
    must_go_on();
  }
}

void call_run_again() {
  int step = 0;
  bool thrown = false;
  elastic::State state;
  state.add("step", step);
  const auto body = [&] {
    std::vector<float> floats(1000, 1.0F);
    for (; step < 20; state.commit()) {
      if (step == 10 && elastic::rank() == 1 && !std::exchange(thrown, true)) {
        throw std::runtime_error("bad record");
      }
      elastic::allreduce(std::span<float>(floats));
      ++step;
    }
  };
  if (elastic::rank() == 1) {
    try {
      elastic::run(state, body);
      fail("no exception");
    } catch (const std::runtime_error& error) {
      if (error.what() != std::string("bad record")) fail(error.what());
    }
  }
  must_fail("run again", ErrorCode::kMismatch,
            {"rank 1 has called elastic::run again, while rank 0 called allreduce of 1000 f32, sum",
             "All ranks enter elastic::run together"},
            [&] { elastic::run(state, body); });
  elastic::run(state, body);
  if (step != 20) fail("run has not gone on");
}

[[noreturn]] void end_with_the_error(bool named) {
  std::vector<float> floats(elastic::rank() == 0 ? 1000 : 2000, 1.0F);
  must_fail("a mismatch", ErrorCode::kMismatch, {"1000", "2000"}, [&] {
    if (named) {
      elastic::allreduce_async("bad", std::span<float>(floats)).wait();
    } else {
      elastic::allreduce(std::span<float>(floats));
    }
  });
  std::fflush(stdout);
  std::_Exit(0);
}
}  // namespace elastic::bad_calls
