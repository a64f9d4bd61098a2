// A worker that makes wrong calls, and checks that it gets the right error and that the job goes
// on. The mode chooses the calls: "mismatch" (ranks make different calls), "named" (the same, under
// one name), "misuse" (calls that are wrong by themselves), "run-again" (by one rank alone). In
// "ended" and "ended-named" a rank ends as soon as it has the error of a mismatch. In "thrown" a
// call ends in an exception on rank 1, which goes on living until rank 0 has ended. In "callbacks"
// functions that the library calls make calls that have no place there.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

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

/// Rank 1 leaves `run` by an exception and calls it again while the others are inside. All are told
/// so, and all go on when they have called it again, too.
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

/// This rank ends at once. On the others, too, the call has no other result than the error.
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

/// The others have the result of that call, and then go on without rank 1, which lives.
void exception_on_one_rank() {
  const std::vector<int> pid{static_cast<int>(::getpid())};
  std::vector<int> pids(3);
  const bool throws = elastic::rank() == 1;
  try {
    elastic::context().allgather(
        elastic::view(std::span<const int>(pid)),
        [&](std::span<const std::byte> values, const std::vector<std::size_t>& /*counts*/) {
          std::memcpy(pids.data(), values.data(), values.size());
          if (throws) throw std::runtime_error("thrown on purpose");
        });
    if (throws) fail("the exception is lost");
  } catch (const std::runtime_error&) {
    if (!throws) throw;
    must_fail("after an exception", ErrorCode::kInternal, {"left the job", "thrown on purpose"},
              [] { elastic::barrier(); });
    while (::kill(pids[0], 0) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::fflush(stdout);
    std::_Exit(0);
  }
  std::vector<int> ones(100, 1);
  const elastic::Contributors contributors = elastic::allreduce(std::span<int>(ones));
  if (contributors.size() != 2 || ones[99] != 2) fail("rank 1 has not left");
}

/// Calls that wait for other ranks are refused in functions that the library calls.
void must_be_refused_in(const std::string& where, elastic::State* state) {
  const auto expect = [&](const std::string& what, const std::function<void()>& call) {
    must_fail(what + " in " + where, ErrorCode::kInvalidArgument, {"was called in " + where}, call);
  };
  std::vector<float> floats(10, 1.0F);
  std::vector<float> more(100000, 1.0F);
  elastic::State other;
  expect("barrier", [] { elastic::barrier(); });
  expect("allreduce", [&] { elastic::allreduce(std::span<float>(floats)); });
  expect("large allreduce", [&] { elastic::allreduce(std::span<float>(more)); });
  expect("broadcast", [&] { elastic::broadcast(std::span<float>(floats), 0); });
  expect("allgather", [&] { elastic::allgather(std::span<const float>(floats)); });
  expect("allreduce_async", [&] { elastic::allreduce_async("named", std::span<float>(floats)); });
  expect("run", [&] { elastic::run(other, [] {}); });
  expect("shutdown", [] { elastic::shutdown(); });
  if (state != nullptr) {
    expect("commit", [&] { state->commit(); });
    expect("save_to", [&] { state->save_to("nowhere"); });
    expect("load_from", [&] { state->load_from("nowhere"); });
    expect("add", [&] { state->add("late", floats); });
  }
  if (elastic::rank() >= elastic::size()) fail("rank and size are wrong");
}

struct CallingObject {
  elastic::State* state;
  std::vector<std::byte> save() const {
    must_be_refused_in("save() of the state entry 'object'", state);
    return {std::byte{1}};
  }
  void load(std::span<const std::byte> /*bytes*/) {
    must_be_refused_in("load() of the state entry 'object'", state);
  }
  void set_members(std::span<const elastic::WorkerId> /*members*/, elastic::WorkerId /*self*/) {
    must_be_refused_in("set_members() of the state entry 'object'", state);
  }
};

void calls_in_callbacks() {
  const std::vector<int> mine(4, elastic::rank());
  const elastic::ConstTensorView block = elastic::view(std::span<const int>(mine));
  elastic::context().allgather(
      block, [](auto, auto) { must_be_refused_in("the function given to allgather", nullptr); });
  elastic::context().reduce_scatter(block, ReduceOp::kSum, [](auto, auto) {
    must_be_refused_in("the function given to reduce_scatter", nullptr);
  });
  must_go_on();

  elastic::State state;
  CallingObject object{&state};
  state.add("object", object);
  elastic::run(state, [&] {
    must_fail("shutdown in run", ErrorCode::kInvalidArgument, {"inside elastic::run"},
              [] { elastic::shutdown(); });
    elastic::State inner;
    must_fail("run in run", ErrorCode::kInvalidArgument, {"while another one is under way"},
              [&] { elastic::run(inner, [] {}); });
    must_go_on();
    state.commit();
  });

  int step = 0;
  elastic::State other;
  other.add("step", step);
  must_fail("run of another state", ErrorCode::kInvalidArgument,
            {"a job has one state", "the State of an earlier elastic::run has 'object'",
             "the one of this elastic::run 'step'", "add the same entries"},
            [&] { elastic::run(other, [] {}); });
  elastic::run(state, [] {});
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
  const auto no_op = static_cast<elastic::ReduceOp>(99);
  expect("reduction", {"allreduce: there is no reduction 99"},
         [&] { elastic::allreduce(std::span<float>(floats), no_op); });
  expect("reduction, named", {"allreduce_async: there is no reduction 99"},
         [&] { elastic::allreduce_async("op", std::span<float>(floats), no_op); });
  // The number of bytes overflows to none.
  const TensorView huge{floats.data(), std::size_t{1} << 62, DType::kF32, {}};
  const std::string count = std::to_string(huge.count);
  expect("huge", {"allreduce, input", count}, [&] { elastic::allreduce(huge); });
  const std::span<float> all(floats);
  const std::vector<TensorView> overlapping{elastic::view(all.subspan(7, 3)),
                                            elastic::view(all.subspan(0, 4)),
                                            elastic::view(all.subspan(3, 3))};
  expect("overlapping", {"grouped_allreduce: tensors 1 and 2 overlap in memory"},
         [&] { elastic::grouped_allreduce(overlapping); });
  expect("overlapping, named", {"allreduce_async: tensors 1 and 2 overlap in memory"},
         [&] { elastic::grouped_allreduce_async("overlapping", overlapping); });
  expect("huge in a group", {"grouped_allreduce, tensor 1", count}, [&] {
    const TensorView small = elastic::view(std::span<float>(floats));
    elastic::grouped_allreduce(std::vector<TensorView>{small, huge});
  });
  expect("a huge group", {"grouped_allreduce: tensors 0 to 1"}, [&] {
    const TensorView half{floats.data(), std::size_t{3} << 52, DType::kF32, {}};
    elastic::grouped_allreduce(std::vector<TensorView>{half, half});
  });
  expect("huge, named", {"allreduce_async, tensor 0", count},
         [&] { elastic::allreduce_async("huge", huge); });
  expect("huge, broadcast", {"broadcast, input", count}, [&] { elastic::broadcast(huge, 0); });
  expect("huge, gathered", {"allgather, input", count},
         [&] { elastic::allgather(huge, elastic::view(std::span<float>(floats))); });
  expect("gathered to a huge one", {"allgather, output", count},
         [&] { elastic::allgather(elastic::view(std::span<float>(floats)), huge); });
  expect("huge, scattered", {"reduce_scatter, input", count},
         [&] { elastic::reduce_scatter(huge, elastic::view(std::span<float>(floats))); });
  expect("device", {"FiniteCheck", "host memory only", "CUDA device 3"}, [&] {
    elastic::FiniteCheck({{"bad", elastic::cuda_view(floats.data(), 5, 3)}});
  });
  const auto with = [&](elastic::Device device) {
    return TensorView{floats.data(), 5, DType::kF32, device};
  };
  const TensorView nowhere = with({static_cast<elastic::Device::Kind>(9), 0});
  const TensorView third = with({elastic::Device::Kind::kHost, 3});
  const TensorView fifth = with({});
  expect("kind of device", {"allreduce, input: there is no kind of device 9"},
         [&] { elastic::allreduce(nowhere); });
  expect("kind of device in a group", {"grouped_allreduce, tensor 1", "kind of device 9"}, [&] {
    elastic::grouped_allreduce(std::vector<TensorView>{fifth, nowhere});
  });
  expect("kind of device, named", {"allreduce_async, tensor 0", "kind of device 9"},
         [&] { elastic::allreduce_async("device", nowhere); });
  expect("index of the host", {"broadcast, input", "this has 3"},
         [&] { elastic::broadcast(third, 0); });
  expect("index of the output", {"allgather, output", "this has 3"},
         [&] { elastic::allgather(fifth, third); });
  expect("overlap", {"input and output of 36 bytes overlap, 4 bytes apart"}, [&] {
    elastic::allreduce(std::span<const float>(floats).first(9), std::span(floats).last(9));
  });
  expect("overlap, the other way", {"input and output of 36 bytes overlap, 4 bytes apart"}, [&] {
    elastic::allreduce(std::span<const float>(floats).last(9), std::span(floats).first(9));
  });
  // One behind the other they do not.
  elastic::allreduce(std::span<const float>(floats).first(5), std::span(floats).last(5),
                     ReduceOp::kMax);
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
  // With one rank the call may be complete at once.
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

/// Checks the errors of calls before init and after shutdown.
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
    if (mode == "run-again") call_run_again();
    if (mode == "ended" || mode == "ended-named") end_with_the_error(mode == "ended-named");
    if (mode == "misuse") wrong_by_itself();
    if (mode == "callbacks") calls_in_callbacks();
    if (mode == "thrown") exception_on_one_rank();
    elastic::shutdown();
    if (mode == "misuse") not_initialized("after shutdown");
    return 0;
  } catch (const std::exception& error) {
    fail(std::string("error at the caller: ") + error.what());
  }
}
