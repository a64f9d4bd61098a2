// A worker that allreduces tensors on a CUDA device, by all functions that take them, and compares
// the results with those of the same calls on host memory, bit by bit. Writes a hash over them to
// <log>/<rank>, for the test to compare. "exact": whose bits do not depend on the order of ranks.
// Ends with 77 where there is no device.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

#include "cuda/driver_calls.hpp"
#include "integration/programs/check_program.hpp"
#include "integration/programs/device_contribution.hpp"
#include "integration/programs/device_rank.hpp"

namespace {

using elastic::CudaStream;
using elastic::DType;
using elastic::Element;
using elastic::ErrorCode;
using elastic::ReduceOp;
using elastic::TensorView;
using elastic::testing::contribution;
using elastic::testing::DeviceRank;
using elastic::testing::fail;
using elastic::testing::for_each_dtype;
using elastic::testing::GpuArray;
using elastic::testing::kOps;
using elastic::testing::must_fail;
using elastic::testing::PinnedArray;
using elastic::testing::require;
using elastic::testing::ResultHash;
using elastic::testing::same_bits;
using elastic::testing::write_result;

constexpr std::size_t kCounts[] = {0, 1, 3, 1003, 70001};

class Checks : DeviceRank {
 public:
  Checks(std::string folder, int device) : DeviceRank(std::move(folder), device) {}

  void run() {
    for_each_dtype([this]<typename T>() { allreduce<T>(); });
    scaled();
    other_operations();
    group();
    named();
    on_some_ranks_only();
    order();
    compressed();
    compressed_doubles();
    compressed_on_some_ranks_only();
    compressed_otherwise();
    mismatch();
    wrong_by_itself();
    write_result(folder_, hash_);
  }

 private:
  template <typename T>
  void same(const std::vector<T>& result, const std::vector<T>& right, const std::string& what) {
    DeviceRank::same(result, right, what);
    hash_.add(result);
  }

  template <Element T>
  void allreduce() {
    for (const ReduceOp op : kOps) {
      for (const std::size_t count : kCounts) {
        if (op != ReduceOp::kSum && count != 1003) continue;
        const std::vector<T> mine = contribution<T>(rank_, count);
        std::vector<T> right = mine;
        elastic::allreduce(std::span<T>(right), op);
        const GpuArray<T> data(gpu_, mine, count % 4);
        check(elastic::allreduce(view_of(data), op, stream()));
        same(data.read(), right, "allreduce in place");
        const GpuArray<T> in(gpu_, mine);
        const GpuArray<T> out(gpu_, std::vector<T>(count));
        check(elastic::allreduce(view_of(in), view_of(out), op));
        same(out.read(), right, "allreduce out of place");
        require(same_bits(in.read(), mine), "an allreduce changed its input");
      }
    }
  }

  /// No backend scales on the device, so the tensors go through host memory.
  void scaled() {
    const elastic::Scale scale(0.5, 4);
    const std::vector<float> mine = contribution<float>(rank_, 1003);
    std::vector<float> right = mine;
    elastic::allreduce(right, ReduceOp::kAverage, scale);
    const GpuArray<float> data(gpu_, mine);
    check(elastic::allreduce(view_of(data), ReduceOp::kAverage, scale, stream()));
    same(data.read(), right, "a scaled allreduce");
    const GpuArray<float> named(gpu_, mine);
    check(elastic::allreduce_async("scaled", view_of(named), ReduceOp::kAverage, scale, stream())
              .wait());
    same(named.read(), right, "a named scaled allreduce");
  }

  /// Tensors that no library for devices combines.
  void other_operations() {
    for (const ReduceOp op :
         {ReduceOp::kAdasum, ReduceOp::kHierarchicalAdasum, ReduceOp::kLogicalXor}) {
      const std::vector<float> mine = contribution<float>(rank_, 1003);
      std::vector<float> right = mine;
      elastic::allreduce(right, op);
      const GpuArray<float> data(gpu_, mine);
      check(elastic::allreduce(view_of(data), op, stream()));
      same(data.read(), right, "an operation in host memory");
    }
  }

  /// Groups of several types, on the device and not; twice, so that memory is used again.
  void group() {
    for (int round = 0; round < 2; ++round) {
      const std::vector<float> floats = contribution<float>(rank_, 40001);
      const std::vector<double> doubles = contribution<double>(rank_, 17);
      const GpuArray<float> on_device(gpu_, floats);
      const GpuArray<double> more(gpu_, doubles);
      std::vector<std::int32_t> own = contribution<std::int32_t>(rank_, 9);
      std::vector<float> right_floats = floats;
      std::vector<double> right_doubles = doubles;
      std::vector<std::int32_t> right_own = own;
      const std::vector<TensorView> host{elastic::view(std::span(right_floats)),
                                         elastic::view(std::span(right_own)),
                                         elastic::view(std::span(right_doubles))};
      elastic::grouped_allreduce(host, ReduceOp::kAverage);
      const std::vector<TensorView> group{view_of(on_device), elastic::view(std::span(own)),
                                          view_of(more)};
      if (round == 0) {
        check(elastic::grouped_allreduce(group, ReduceOp::kAverage, stream()));
      } else {
        check(
            elastic::grouped_allreduce_async("group", group, ReduceOp::kAverage, stream()).wait());
      }
      same(on_device.read(), right_floats, "a group's tensor on the device");
      same(more.read(), right_doubles, "another one");
      same(own, right_own, "a group's tensor on the host");
    }
  }

  /// Many, of which some are fused, in an order of its own on each rank; some in host memory.
  void named() {
    constexpr std::size_t kTensors = 12;
    for (int step = 0; step < 3; ++step) {
      std::vector<GpuArray<float>> on_device;
      std::vector<std::vector<float>> right;
      for (std::size_t i = 0; i < kTensors; ++i) {
        right.push_back(contribution<float>(rank_ + step, i * 4001));
        on_device.emplace_back(gpu_, right.back());
      }
      std::vector<std::vector<float>> own = right;
      std::vector<std::size_t> order(kTensors);
      for (std::size_t i = 0; i < kTensors; ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(rank_ + step)));
      std::vector<elastic::Work> works(kTensors);
      for (const std::size_t i : order) {
        const TensorView tensor =
            i % 4 == 3 ? elastic::view(std::span(own[i])) : view_of(on_device[i]);
        works[i] = elastic::allreduce_async("tensor " + std::to_string(i), tensor, ReduceOp::kSum,
                                            i % 4 == 3 ? CudaStream{} : stream());
      }
      for (std::size_t i = 0; i < kTensors; ++i) {
        const bool by_stream = step == 2;
        check(by_stream ? works[i].wait(stream()) : works[i].wait());
        elastic::allreduce(std::span<float>(right[i]));
        // In a bucket, elements may be added up in another order.
        close(i % 4 == 3  ? own[i]
              : by_stream ? read_behind(on_device[i])
                          : on_device[i].read(),
              right[i]);
      }
    }
  }
  /// The content as the program's stream reads it.
  std::vector<float> read_behind(const GpuArray<float>& array) {
    const GpuArray<float> copy(gpu_, std::vector<float>(array.count()));
    if (array.count() > 0) stream_.copy(copy.address(), array.address(), array.bytes());
    stream_.synchronize();
    return copy.read();
  }
  static void close(const std::vector<float>& result, const std::vector<float>& right) {
    for (std::size_t i = 0; i < right.size(); ++i) {
      require(std::abs(result[i] - right[i]) < 1e-3F, "a named tensor is wrong");
    }
  }

  /// Where tensors lie is each rank's own business.
  void on_some_ranks_only() {
    std::vector<double> own = contribution<double>(rank_, 5000);
    std::vector<double> right = own;
    const GpuArray<double> array(gpu_, own);
    elastic::allreduce(std::span<double>(right));
    if (rank_ % 2 == 0) {
      check(elastic::allreduce(view_of(array), ReduceOp::kSum, stream()));
      own = array.read();
    } else {
      check(elastic::allreduce(std::span<double>(own)));
    }
    same(own, right, "with tensors on devices on some ranks only");
  }

  /// Multiples of 1/4 that no half rounds, and some numbers that every half rounds down to 1.
  template <typename T>
  static std::vector<T> quarters(int rank, std::size_t count) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<T>((static_cast<std::size_t>(rank) + i) % 7) / 4;
      if (i % 5 == 0) values[i] = static_cast<T>(1) + static_cast<T>(0x1p-12);
    }
    return values;
  }

  static elastic::GradientCompressor compressor_of(const std::string& name) {
    return {elastic::context(), elastic::find_compression(name).value()};
  }

  /// The same calls with tensors on the device and in host memory, one of which goes whole: the
  /// same sums, residuals and bytes.
  void compressed() {
    for (const std::string name :
         {"none", "f16", "f16:1024", "bf16", "int8:100", "top_k:0.02", "top_k:0.02:0.5:4"}) {
      elastic::GradientCompressor on_device = compressor_of(name);
      elastic::GradientCompressor on_host = compressor_of(name);
      for (int call = 0; call < 6; ++call) {
        const ReduceOp op = call % 2 == 0 ? ReduceOp::kSum : ReduceOp::kAverage;
        const std::size_t counts[] = {0, 3, 70001};
        const std::size_t count = counts[call % 3];
        on_device.send_whole(call == 4 && rank_ == 0);
        on_host.send_whole(call == 4 && rank_ == 0);
        std::vector<float> host_floats = quarters<float>(rank_ + call, count);
        std::vector<float> host_whole = quarters<float>(rank_, 50);
        const GpuArray<float> floats(gpu_, host_floats, count % 4);
        const GpuArray<float> whole(gpu_, host_whole);
        const std::string floats_name = "floats " + std::to_string(count);
        const std::vector<elastic::NamedTensor> named{{floats_name, view_of(floats)},
                                                      {"whole", view_of(whole), true}};
        check(on_device.grouped_allreduce(named, op, stream()));
        const std::vector<elastic::NamedTensor> host_named{
            {floats_name, elastic::view(std::span(host_floats))},
            {"whole", elastic::view(std::span(host_whole)), true}};
        check(on_host.grouped_allreduce(host_named, op));
        same(floats.read(), host_floats, name);
        same(whole.read(), host_whole, name + ", whole");
        same_residuals(on_device, on_host, floats_name);
      }
    }
  }

  void same_residuals(const elastic::GradientCompressor& on_device,
                      const elastic::GradientCompressor& on_host, const std::string& name) {
    const auto mine = on_device.residual(name);
    const auto right = on_host.residual(name);
    DeviceRank::same(std::vector<float>(mine.begin(), mine.end()),
                     std::vector<float>(right.begin(), right.end()), "a residual");
    const auto& traffic = on_device.latest();
    const auto& right_traffic = on_host.latest();
    require(traffic.tensors == right_traffic.tensors && traffic.encoded == right_traffic.encoded &&
                traffic.sent == right_traffic.sent &&
                traffic.sent_uncompressed == right_traffic.sent_uncompressed,
            "other traffic than on the host");
  }

  /// They are rounded by way of floats, and come back from the sum of the halves of these.
  void compressed_doubles() {
    for (const std::string name : {"f16", "f16:1024", "bf16"}) {
      elastic::GradientCompressor on_device = compressor_of(name);
      elastic::GradientCompressor on_host = compressor_of(name);
      for (int call = 0; call < 4; ++call) {
        const GpuArray<double> doubles(gpu_, quarters<double>(rank_, 1003));
        const GpuArray<double> whole(gpu_, quarters<double>(rank_, 5));
        std::vector<float> right = quarters<float>(rank_, 1003);
        std::vector<double> right_whole = quarters<double>(rank_, 5);
        const std::vector<elastic::NamedTensor> named{{"doubles", view_of(doubles)},
                                                      {"whole", view_of(whole), true}};
        check(on_device.grouped_allreduce(named, ReduceOp::kAverage, stream()));
        check(on_host.allreduce("doubles", right));
        elastic::allreduce(std::span<double>(right_whole), ReduceOp::kAverage);
        std::vector<double> averages(right.begin(), right.end());
        for (double& value : averages) value /= elastic::size();
        same(doubles.read(), averages, name + ", doubles");
        same(whole.read(), right_whole, name + ", whole doubles");
      }
    }
  }

  /// Some ranks have the tensors on a device, and the others in host memory.
  void compressed_on_some_ranks_only() {
    for (const std::string name : {"f16:8", "int8", "top_k:0.1"}) {
      elastic::GradientCompressor mixed = compressor_of(name);
      elastic::GradientCompressor on_host = compressor_of(name);
      for (int call = 0; call < 3; ++call) {
        std::vector<float> own = quarters<float>(rank_ + call, 5000);
        std::vector<float> right = own;
        const GpuArray<float> array(gpu_, own);
        if (rank_ % 2 == 0) {
          check(mixed.allreduce("a", view_of(array), ReduceOp::kAverage, stream()));
          own = array.read();
        } else {
          check(mixed.allreduce("a", own, ReduceOp::kAverage));
        }
        check(on_host.allreduce("a", right, ReduceOp::kAverage));
        same(own, right, name + " on some ranks");
      }
    }
  }

  void compressed_otherwise() {
    const std::vector<float> values = quarters<float>(rank_, 30);
    const GpuArray<float> array(gpu_, values);
    const GpuArray<double> doubles(gpu_, std::vector<double>(3));
    must_fail(ErrorCode::kInvalidArgument,
              {"tensor 'a' lies on a CUDA device", "all kinds but two_bit", "host memory"},
              [&] { compressor_of("two_bit").allreduce("a", view_of(array)); });
    for (const char* const name : {"int8", "top_k"}) {
      must_fail(ErrorCode::kInvalidArgument, {"tensor 'b' is of f64", "take f16 or bf16"},
                [&] { compressor_of(name).allreduce("b", view_of(doubles)); });
    }
    std::vector<float> host(3);
    const std::vector<elastic::NamedTensor> mixed{{"a", view_of(array)},
                                                  {"b", elastic::view(std::span(host))}};
    must_fail(ErrorCode::kInvalidArgument, {"'a' lies on a CUDA device", "'b' in host memory"},
              [&] { compressor_of("f16").grouped_allreduce(mixed); });
    must_fail(ErrorCode::kInvalidArgument, {"CUDA stream"}, [&] {
      compressor_of("f16").allreduce("b", elastic::view(std::span(host)), ReduceOp::kSum, stream());
    });
    must_fail(ErrorCode::kInvalidArgument, {"GradientCompressor", "host memory"}, [&] {
      compressor_of("int8").allreduce("c", elastic::cuda_view(host.data(), 3, index_));
    });
    if (elastic::size() > 1) {
      must_fail(ErrorCode::kMismatch, {"30 f16, sum", "30 bf16, sum"},
                [&] { compressor_of(rank_ == 0 ? "f16" : "bf16").allreduce("a", view_of(array)); });
      must_fail(ErrorCode::kMismatch, {"other names, sizes or op"}, [&] {
        compressor_of("int8").allreduce(rank_ == 0 ? "a" : "other", view_of(array));
      });
    }
    require(array.read() == values, "a failed call changed its tensor");
  }

  /// Calls come after what their stream was given to do; other calls of this worker need not wait.
  void order() {
    const std::vector<std::int64_t> ones(20000, 1);
    const GpuArray<std::int64_t> array(gpu_, std::vector<std::int64_t>(ones.size(), -1000));
    const PinnedArray<std::int64_t> pinned(gpu_, ones);
    const auto is_sum = [&](const std::vector<std::int64_t>& values) {
      return values == std::vector<std::int64_t>(ones.size(), elastic::size());
    };
    // Memory to go through is there already: to get it may wait for a device.
    elastic::allreduce_async("late", view_of(array), ReduceOp::kMax, stream()).wait();
    {
      std::atomic<bool> gate{false};
      stream_.hold(gate);
      stream_.write(array.address(), pinned);
      const elastic::Work work =
          elastic::allreduce_async("late", view_of(array), ReduceOp::kSum, stream());
      check(elastic::barrier());
      require(!work.ready(), "an allreduce has not waited for its stream");
      gate = true;
      gate.notify_all();
      check(work.wait());
      require(is_sum(array.read()), "an asynchronous allreduce came before its stream was there");
    }
    std::atomic<bool> gate{false};
    std::thread other([&] {
      gate = true;
      gate.notify_all();
    });
    stream_.hold(gate);
    stream_.write(array.address(), pinned);
    check(elastic::allreduce(view_of(array), ReduceOp::kSum, stream()));
    require(is_sum(array.read()), "an allreduce came before its stream was there");
    other.join();
  }

  /// Others call something else: an error on all, and the tensor stays as it was.
  void mismatch() {
    if (elastic::size() == 1) return;
    const std::vector<float> values = contribution<float>(rank_, rank_ == 0 ? 100 : 101);
    const GpuArray<float> array(gpu_, values);
    must_fail(ErrorCode::kMismatch, {"100 f32", "101 f32"},
              [&] { elastic::allreduce(view_of(array), ReduceOp::kSum, stream()); });
    require(array.read() == values, "a failed call changed its tensor");
  }

  void wrong_by_itself() {
    std::vector<float> host(10, 1.0F);
    const GpuArray<float> array(gpu_, host);
    const TensorView called_host{array.data(), 10, DType::kF32, {}};
    const auto expect = [](const std::vector<std::string>& words,
                           const std::function<void()>& call) {
      must_fail(ErrorCode::kInvalidArgument, words, call);
    };
    expect({"host memory", "as a host tensor"},
           [&] { elastic::allreduce(elastic::cuda_view(host.data(), 10, index_)); });
    expect({"lies on CUDA device", "cuda_view"}, [&] { elastic::allreduce(called_host); });
    expect({"lies on CUDA device", "cuda_view"},
           [&] { (void)elastic::allreduce_async("name", called_host); });
    expect({"CUDA device 1000", "this process has"},
           [&] { elastic::allreduce(elastic::cuda_view(host.data(), 10, 1000)); });
    expect({"CUDA stream", "no tensor on a CUDA device"},
           [&] { elastic::allreduce(elastic::view(std::span(host)), ReduceOp::kSum, stream()); });
    expect({"CUDA stream"}, [&] {
      (void)elastic::allreduce_async("name", elastic::view(std::span(host)), ReduceOp::kSum,
                                     stream());
    });
    expect({"must lie alike"},
           [&] { elastic::allreduce(view_of(array), elastic::view(std::span(host))); });
    expect({"cudaStreamPerThread"}, [&] {
      elastic::allreduce(view_of(array), ReduceOp::kSum, {reinterpret_cast<void*>(2)});
    });
    const elastic::Work work =
        elastic::allreduce_async("name", view_of(array), ReduceOp::kSum, stream());
    work.wait();
    require(array.read() == std::vector<float>(10, static_cast<float>(elastic::size())),
            "a right call after wrong ones has a wrong result");
  }

  ResultHash hash_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) fail("usage: device_check LOG_FOLDER [exact]");
  elastic::testing::exact = argc == 3;
  return elastic::testing::on_a_device([&](int device) { Checks(argv[1], device).run(); });
}
