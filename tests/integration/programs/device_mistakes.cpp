// A worker that makes wrong broadcasts, allgathers and reduce_scatters of tensors on a CUDA device,
// alone or together with others. Each has to end in the right error, change nothing, and let the
// job go on. Writes "end" to <log>/<rank>. Ends with 77 if there is no device.
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>

#include "cuda/driver_calls.hpp"
#include "integration/programs/check_program.hpp"
#include "integration/programs/device_contribution.hpp"
#include "integration/programs/device_rank.hpp"

namespace {

using elastic::CudaStream;
using elastic::DType;
using elastic::ErrorCode;
using elastic::ReduceOp;
using elastic::TensorView;
using elastic::testing::contribution;
using elastic::testing::DeviceRank;
using elastic::testing::fail;
using elastic::testing::GpuArray;
using elastic::testing::must_fail;
using elastic::testing::require;

class Mistakes : DeviceRank {
 public:
  Mistakes(std::string folder, int device) : DeviceRank(std::move(folder), device) {}

  void run() {
    too_little_room(/*on_host_too=*/true);
    too_little_room(/*on_host_too=*/false);
    mismatch();
    wrong_by_itself();
    std::ofstream(folder_ + "/" + std::to_string(rank_)) << "end" << std::endl;
  }

 private:
  /// An error where there is too little, and only there; the outputs stay as they were, and all go
  /// on. Rank 0 has too little in device memory, rank 1 in host memory or in a device's.
  void too_little_room(bool on_host_too) {
    const std::vector<float> block = contribution<float>(rank_, 100);
    const std::vector<float> data = contribution<float>(rank_, 100 * 8);
    const auto size = static_cast<std::size_t>(size_);
    const std::size_t largest = (data.size() + size - 1) / size;
    const GpuArray<float> in(gpu_, block);
    const GpuArray<float> whole(gpu_, data);
    std::vector<float> own(2000, -1.0F);
    const GpuArray<float> out(gpu_, own);
    const auto output = [&](std::size_t needed) {
      TensorView view =
          on_host_too && rank_ % 2 == 1 ? elastic::view(std::span(own)) : view_of(out);
      view.count = rank_ < 2 ? needed - 1 : needed;
      return view;
    };
    const auto expect = [&](const std::vector<std::string>& words,
                            const std::function<void()>& call) {
      rank_ < 2 ? must_fail(ErrorCode::kInvalidArgument, words, call) : call();
    };
    expect({"allgather", std::to_string(100 * size) + " elements together",
            "room for " + std::to_string(100 * size - 1), "call again"},
           [&] { elastic::allgather(view_of(in), output(100 * size), stream()); });
    expect({"reduce_scatter", "has " + std::to_string(largest),
            "room for " + std::to_string(largest - 1), "call again"},
           [&] {
             elastic::reduce_scatter(view_of(whole), output(largest), ReduceOp::kSum, stream());
           });
    if (rank_ < 2) {
      require(out.read() == std::vector<float>(2000, -1.0F), "a failed call wrote to the device");
    }
    check(elastic::allgather(view_of(in), view_of(out), stream()).contributors);
    const auto all = elastic::allgather(std::span<const float>(block)).values;
    std::vector<float> got = out.read();
    got.resize(all.size());
    require(got == all, "a call with more room is wrong after one with too little");
  }

  /// Others call something else: an error on all, and the tensors stay as they were.
  void mismatch() {
    if (size_ == 1) return;
    const std::size_t count = rank_ == 0 ? 100 : 101;
    const std::vector<float> values = contribution<float>(rank_, count);
    const GpuArray<float> array(gpu_, values);
    must_fail(ErrorCode::kMismatch, {"100 f32", "101 f32"},
              [&] { elastic::broadcast(view_of(array), 0, stream()); });
    must_fail(ErrorCode::kMismatch, {"100 f32", "101 f32"}, [&] {
      elastic::reduce_scatter(view_of(array), view_of(array), ReduceOp::kSum, stream());
    });
    must_fail(ErrorCode::kMismatch, {"allgather", "barrier"}, [&] {
      if (rank_ == 0) {
        elastic::barrier();
      } else {
        elastic::allgather(view_of(array), view_of(array), stream());
      }
    });
    require(array.read() == values, "a failed call changed its tensor");
  }

  void wrong_by_itself() {
    std::vector<float> host(10, 1.0F);
    const GpuArray<float> array(gpu_, host);
    const TensorView right = view_of(array);
    const TensorView called_host{array.data(), 10, DType::kF32, {}};
    const TensorView called_device = elastic::cuda_view(host.data(), 10, index_);
    const TensorView on_host = elastic::view(std::span(host));
    TensorView of_ints = right;
    of_ints.dtype = DType::kI32;
    struct Call {
      std::string name;
      std::function<void(TensorView in, TensorView out, CudaStream with)> make;
    };
    const std::vector<Call> calls{
        {"allgather", [](auto in, auto out, auto with) { elastic::allgather(in, out, with); }},
        {"reduce_scatter", [](auto in, auto out, auto with) {
           elastic::reduce_scatter(in, out, ReduceOp::kSum, with);
         }}};
    const CudaStream per_thread{reinterpret_cast<void*>(2)};
    const auto expect = [](const std::vector<std::string>& words,
                           const std::function<void()>& call) {
      must_fail(ErrorCode::kInvalidArgument, words, call);
    };
    for (const auto& [name, make] : calls) {
      const auto wrong = [&, name = name, make = make](std::vector<std::string> words,
                                                       TensorView in, TensorView out,
                                                       CudaStream with = {}) {
        words.push_back(name);
        expect(words, [&] { make(in, out, with); });
      };
      wrong({"input: a tensor of 10", "host memory", "as a host tensor"}, called_device, right);
      wrong({"output: a tensor of 10", "host memory", "as a host tensor"}, right, called_device);
      wrong({"input: a tensor of 10", "lies on CUDA device", "cuda_view"}, called_host, right);
      wrong({"output: a tensor of 10", "lies on CUDA device", "cuda_view"}, right, called_host);
      wrong({"output: a tensor of 10", "lies on CUDA device"}, on_host, called_host);
      wrong({"CUDA device 1000"}, elastic::cuda_view(host.data(), 10, 1000), on_host);
      wrong({"CUDA device 1000", "on the same"}, right, elastic::cuda_view(host.data(), 10, 1000));
      wrong({"differ in dtype"}, right, of_ints);
      wrong({"cudaStreamPerThread"}, right, right, per_thread);
      expect({"CUDA stream", "no tensor on a CUDA device"},
             [&, make = make] { make(on_host, on_host, stream()); });
    }
    expect({"broadcast", "host memory", "as a host tensor"},
           [&] { elastic::broadcast(called_device, 0); });
    expect({"broadcast", "lies on CUDA device", "cuda_view"},
           [&] { elastic::broadcast(called_host, 0); });
    expect({"CUDA stream", "no tensor"}, [&] { elastic::broadcast(on_host, 0, stream()); });
    expect({"broadcast", "cudaStreamPerThread"}, [&] { elastic::broadcast(right, 0, per_thread); });
    must_fail(ErrorCode::kMismatch, {"root 100 is no rank"},
              [&] { elastic::broadcast(right, 100, stream()); });
    TensorView nowhere = right;
    nowhere.data = nullptr;
    expect({"null pointer"}, [&] { elastic::broadcast(nowhere, 0); });
    check(elastic::broadcast(right, 0, stream()));
    require(array.read() == host, "a right call after wrong ones has a wrong result");
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: device_mistakes LOG_FOLDER");
  return elastic::testing::on_a_device([&](int device) { Mistakes(argv[1], device).run(); });
}
