// Calls in functions that the library calls, and exceptions from these.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

#include "integration/programs/bad_calls.hpp"

namespace elastic::bad_calls {

namespace {

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
  expect("allreduce_async",
         [&] { (void)elastic::allreduce_async("named", std::span<float>(floats)); });
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

}  // namespace

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
    // Ends after the launcher has noticed the end of rank 0. This polls, because no event tells
    // when another process has been waited for.
    while (::kill(pids[0], 0) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::fflush(stdout);
    std::_Exit(0);
  }
  std::vector<int> ones(100, 1);
  const elastic::Contributors contributors = elastic::allreduce(std::span<int>(ones));
  if (contributors.size() != 2 || ones[99] != 2) fail("rank 1 has not left");
}
}  // namespace elastic::bad_calls
