// Calls that are wrong by themselves.
#include <functional>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/step_group.hpp>
#include <elastic/training.hpp>

#include "integration/programs/bad_calls.hpp"

namespace elastic::bad_calls {

void wrong_by_itself() {
  std::vector<float> floats(10, 1.0F);
  std::vector<float> fewer(9, 1.0F);
  const auto expect = [](const std::string& what, const std::vector<std::string>& words,
                         const std::function<void()>& call) {
    must_fail(what, ErrorCode::kInvalidArgument, words, call);
  };
  for (const int root : {99, -1}) {
    must_fail("root", ErrorCode::kMismatch, {"root " + std::to_string(root) + " is no rank"},
              [&] { elastic::broadcast(std::span<float>(floats), root); });
  }
  const TensorView null_tensor{nullptr, 5, DType::kF32, {}};
  elastic::StepGroup step(elastic::context());
  expect("null in a step", {"StepGroup::allreduce", "null"},
         [&] { step.allreduce("a", null_tensor); });
  expect("sizes", {"the input is 9 f32 and the output 10 f32"},
         [&] { elastic::allreduce(std::span<const float>(fewer), std::span<float>(floats)); });
  expect("null", {"null"}, [] { elastic::allreduce(TensorView{nullptr, 5, DType::kF32, {}}); });
  const auto no_op = static_cast<elastic::ReduceOp>(99);
  expect("reduction", {"allreduce: there is no reduction 99"},
         [&] { elastic::allreduce(std::span<float>(floats), no_op); });
  expect("reduction, named", {"allreduce_async: there is no reduction 99"},
         [&] { (void)elastic::allreduce_async("op", std::span<float>(floats), no_op); });
  std::vector<std::int32_t> integers(3);
  expect("bits of floats", {"allreduce: f32 has no bit xor"},
         [&] { elastic::allreduce(std::span<float>(floats), elastic::ReduceOp::kBitXor); });
  expect("Adasum of integers", {"allreduce_async: Adasum takes", "this is i32"},
         [&] { (void)elastic::allreduce_async("whole", integers, elastic::ReduceOp::kAdasum); });
  expect("Adasum of no allreduce", {"reduce_scatter: kAdasum", "for allreduces only"}, [&] {
    (void)elastic::reduce_scatter(std::span<const float>(floats), elastic::ReduceOp::kAdasum);
  });
  const elastic::Scale halved(0.5, 1);
  expect("scaled integers", {"allreduce: i32 is not scaled"},
         [&] { elastic::allreduce(integers, elastic::ReduceOp::kSum, halved); });
  expect("scaled integers, named", {"allreduce_async: i32 is not scaled"}, [&] {
    (void)elastic::allreduce_async("whole", integers, elastic::ReduceOp::kSum, halved);
  });
  expect("infinite scale", {"allreduce: a factor of the scale is not finite"},
         [&] { elastic::allreduce(floats, elastic::ReduceOp::kSum, elastic::Scale(1, 1 / 0.0)); });
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
         [&] { (void)elastic::grouped_allreduce_async("overlapping", overlapping); });
  expect("huge in a group", {"grouped_allreduce, tensor 1", count}, [&] {
    const TensorView small = elastic::view(std::span<float>(floats));
    elastic::grouped_allreduce(std::vector<TensorView>{small, huge});
  });
  expect("a huge group", {"grouped_allreduce: tensors 0 to 1"}, [&] {
    const TensorView half{floats.data(), std::size_t{3} << 52, DType::kF32, {}};
    elastic::grouped_allreduce(std::vector<TensorView>{half, half});
  });
  expect("huge, named", {"allreduce_async, tensor 0", count},
         [&] { (void)elastic::allreduce_async("huge", huge); });
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
         [&] { (void)elastic::allreduce_async("device", nowhere); });
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
  expect("empty name", {"name"},
         [&] { (void)elastic::allreduce_async("", std::span<float>(floats)); });
  expect("empty work", {}, [] { elastic::Work().wait(); });
  must_fail("too much memory", ErrorCode::kUnavailable,
            {"1152921504606846976 bytes", "this machine"},
            [] { elastic::allocate(std::size_t{1} << 60); });

  elastic::Work work;
  if (elastic::rank() == 0) work = elastic::allreduce_async("twice", std::span<float>(floats));
  // With one rank the call may be complete at once.
  if (elastic::rank() == 0 && elastic::size() > 1) {
    expect("under way", {"'twice'", "under way"},
           [&] { (void)elastic::allreduce_async("twice", std::span<float>(floats)); });
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

void not_initialized(const std::string& when) {
  std::vector<float> floats(10, 1.0F);
  const auto expect = [&](const std::string& what, const std::function<void()>& call) {
    must_fail(what + " " + when, ErrorCode::kNotInitialized, {"elastic::"}, call);
  };
  expect("allreduce", [&] { elastic::allreduce(std::span<float>(floats)); });
  expect("named", [&] { (void)elastic::allreduce_async("name", std::span<float>(floats)); });
  expect("barrier", [] { elastic::barrier(); });
  expect("rank", [] { elastic::rank(); });
  expect("run", [] {
    elastic::State state;
    elastic::run(state, [] {});
  });
}
}  // namespace elastic::bad_calls
