// A worker that calls what is wrong, and checks that it gets the error that it should and that the
// job goes on. The mode says what: "mismatch" (ranks make different calls), "named" (likewise under
// one name), "misuse" (calls that are wrong by themselves).
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>

namespace {

using elastic::DType;
using elastic::ErrorCode;
using elastic::ReduceOp;
using elastic::TensorView;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bad_calls: %s\n", what.c_str());
  std::_Exit(3);
}

/// `call` must fail with `code`, and its message must have all of `words` in it.
void must_fail(const std::string& what, ErrorCode code, const std::vector<std::string>& words,
               const std::function<void()>& call) {
  try {
    call();
  } catch (const elastic::Error& error) {
    const std::string message = error.what();
    if (error.code() != code) {
      fail(what + ": error of kind " + std::to_string(static_cast<int>(error.code())) + ", not " +
           std::to_string(static_cast<int>(code)) + ": " + message);
    }
    for (const std::string& word : words) {
      if (message.find(word) == std::string::npos) {
        fail(what + ": '" + word + "' is missing in: " + message);
      }
    }
    std::printf("%s: %s\n", what.c_str(), message.c_str());
    return;
  }
  fail(what + ": no error");
}

/// The job goes on: a correct call has the correct result.
void must_go_on() {
  std::vector<int> ones(100, 1);
  const elastic::Contributors contributors = elastic::allreduce(std::span<int>(ones));
  if (ones[99] != elastic::size() || static_cast<int>(contributors.size()) != elastic::size()) {
    fail("a correct call after a wrong one has a wrong result");
  }
}

bool odd() {
  return elastic::rank() % 2 == 1;
}

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
  expect("roots", {"broadcast", "from rank 0", "from rank 1"},
         [&] { elastic::broadcast(std::span<float>(floats), odd() ? 1 : 0); });
  expect("groups", {"2 tensors", "3 tensors"}, [&] {
    const TensorView tensor = elastic::view(std::span<float>(floats));
    elastic::grouped_allreduce(std::vector<TensorView>(odd() ? 3 : 2, tensor));
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

void wrong_by_itself() {
  std::vector<float> floats(10, 1.0F);
  std::vector<float> fewer(9, 1.0F);
  const auto expect = [](const std::string& what, const std::vector<std::string>& words,
                         const std::function<void()>& call) {
    must_fail(what, ErrorCode::kInvalidArgument, words, call);
  };
  expect("root", {"root 99"}, [&] { elastic::broadcast(std::span<float>(floats), 99); });
  expect("negative root", {"root -1"}, [&] { elastic::broadcast(std::span<float>(floats), -1); });
  expect("sizes", {"input and output"},
         [&] { elastic::allreduce(std::span<const float>(fewer), std::span<float>(floats)); });
  expect("null", {"null"}, [] { elastic::allreduce(TensorView{nullptr, 5, DType::kF32, {}}); });
  expect("device", {"FiniteCheck", "host memory only", "CUDA device 3"}, [&] {
    elastic::FiniteCheck({{"bad", elastic::cuda_view(floats.data(), 5, 3)}});
  });
  std::vector<int> ints(10);
  const TensorView values = elastic::view(std::span<float>(floats));
  const TensorView numbers = elastic::view(std::span<int>(ints));
  expect("gathered types", {"allgather", "dtype"}, [&] { elastic::allgather(values, numbers); });
  expect("scattered types", {"reduce_scatter", "dtype"},
         [&] { elastic::reduce_scatter(values, numbers); });
  expect("nowhere to gather", {"null"}, [&] {
    elastic::allgather(values, TensorView{nullptr, 100, DType::kF32, {}});
  });
  expect("a broadcast's stream", {"CUDA stream"},
         [&] { elastic::broadcast(values, 0, {floats.data()}); });
  expect("stream", {"CUDA stream"}, [&] {
    elastic::allreduce(elastic::view(std::span<float>(floats)), ReduceOp::kSum, {floats.data()});
  });
  expect("empty name", {"name"}, [&] { elastic::allreduce_async("", std::span<float>(floats)); });
  expect("empty work", {}, [] { elastic::Work().wait(); });
  must_fail("too much memory", ErrorCode::kUnavailable,
            {"1152921504606846976 bytes", "this machine"},
            [] { elastic::allocate(std::size_t{1} << 60); });

  elastic::Work work;
  if (elastic::rank() == 0) work = elastic::allreduce_async("twice", std::span<float>(floats));
  // Alone, it may be complete at once.
  if (elastic::rank() == 0 && elastic::size() > 1) {
    expect("under way", {"'twice'", "under way"},
           [&] { elastic::allreduce_async("twice", std::span<float>(floats)); });
    expect("contributors too early", {}, [&] { work.contributors(); });
  }
  elastic::barrier();
  if (elastic::rank() != 0) work = elastic::allreduce_async("twice", std::span<float>(floats));
  work.wait();
  must_go_on();

  elastic::State state;
  state.add("floats", floats);
  expect("name twice", {"floats"}, [&] { state.add("floats", fewer); });
  must_fail("commit outside run", ErrorCode::kNotInitialized, {}, [&] { state.commit(); });
  expect("second init", {"init"}, [] { elastic::init(); });
  must_go_on();
}

/// Before init and after shutdown.
void not_initialized(const std::string& when) {
  std::vector<float> floats(10, 1.0F);
  const auto expect = [&](const std::string& what, const std::function<void()>& call) {
    must_fail(what + " " + when, ErrorCode::kNotInitialized, {"elastic::"}, call);
  };
  expect("allreduce", [&] { elastic::allreduce(std::span<float>(floats)); });
  expect("named", [&] { elastic::allreduce_async("name", std::span<float>(floats)); });
  expect("barrier", [] { elastic::barrier(); });
  expect("rank", [] { elastic::rank(); });
  expect("run", [] {
    elastic::State state;
    elastic::run(state, [] {});
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: bad_calls MODE");
  const std::string mode = argv[1];
  try {
    if (mode == "misuse") not_initialized("before init");
    elastic::init();
    if (mode == "mismatch") different_calls();
    if (mode == "named") different_tensors();
    if (mode == "misuse") wrong_by_itself();
    elastic::shutdown();
    if (mode == "misuse") not_initialized("after shutdown");
    return 0;
  } catch (const std::exception& error) {
    fail(std::string("error at the caller: ") + error.what());
  }
}
