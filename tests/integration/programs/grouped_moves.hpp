#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <elastic/elastic.hpp>

#include "cuda/driver_calls.hpp"
#include "integration/programs/check_program.hpp"
#include "integration/programs/device_contribution.hpp"
#include "integration/programs/device_rank.hpp"

namespace elastic::testing {

/// Makes grouped calls of tensors on a device, and named calls of single ones, and compares the
/// results with those of the same calls on host memory, bit by bit.
class GroupedMoves : DeviceRank {
 public:
  GroupedMoves(std::string folder, int device) : DeviceRank(std::move(folder), device) {}

  void run() {
    for_each_dtype([this]<typename T>() {
      scatter<T>({1003, 1, 12, 70001}, ReduceOp::kSum);
      gather<T>({5, 1003});
    });
    for (const ReduceOp op : kOps) scatter<float>({64, 5000, 3}, op);
    // Large enough for calls of their own, but for the last two.
    const auto members = static_cast<std::size_t>(size_);
    scatter<float>({members << 19U, 30, members << 18U, 1}, ReduceOp::kAverage);
    scatter<float>({members << 18U}, ReduceOp::kSum);
    gather<double>({70001, 0, 64});
    mixed();
    without_room();
    by_name();
  }

 private:
  /// Tensors on the device, with room behind each.
  template <typename T>
  struct Arrays {
    std::vector<std::vector<T>> before;
    std::vector<std::unique_ptr<GpuArray<T>>> arrays;
  };

  template <typename T>
  Arrays<T> arrays_of(int seed, const std::vector<std::size_t>& counts) const {
    Arrays<T> all;
    for (const std::size_t count : counts) {
      all.before.push_back(contribution<T>(seed, count));
      all.arrays.push_back(
          std::make_unique<GpuArray<T>>(gpu_, all.before.back(), all.arrays.size() % 4));
    }
    return all;
  }
  template <typename T, typename View>
  std::vector<View> views_of(const Arrays<T>& all) const {
    std::vector<View> views;
    for (const auto& array : all.arrays) views.push_back(view_of(*array));
    return views;
  }
  template <typename T>
  static void has(const Arrays<T>& all, std::size_t tensor, std::vector<T> result,
                  const std::string& what) {
    const std::vector<T>& before = all.before[tensor];
    result.insert(result.end(), before.begin() + static_cast<std::ptrdiff_t>(result.size()),
                  before.end());
    same(all.arrays[tensor]->read(), result, what + ", tensor " + std::to_string(tensor));
  }

  template <typename T>
  void scatter(const std::vector<std::size_t>& counts, ReduceOp op) {
    const Arrays<T> in = arrays_of<T>(rank_, counts);
    std::vector<std::size_t> rooms;
    for (const std::size_t count : counts)
      rooms.push_back(count / static_cast<unsigned>(size_) + 3);
    const Arrays<T> out = arrays_of<T>(100, rooms);
    const ScatteredTensors result = elastic::grouped_reduce_scatter(
        views_of<T, ConstTensorView>(in), views_of<T, TensorView>(out), op, stream());
    check(result.contributors);
    std::vector<std::vector<T>> parts = out.before;
    std::vector<ConstTensorView> inputs;
    std::vector<TensorView> outputs;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      inputs.push_back(view(std::span<const T>(in.before[i])));
      outputs.push_back(view(std::span<T>(parts[i])));
    }
    const ScatteredTensors right = elastic::grouped_reduce_scatter(inputs, outputs, op);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      require(result.tensors[i].count == right.tensors[i].count &&
                  result.tensors[i].offset == right.tensors[i].offset,
              "another part of a tensor on the device");
      has(out, i, parts[i], "grouped_reduce_scatter on the device");
      has(in, i, in.before[i], "the input of a grouped_reduce_scatter");
    }
  }

  /// Blocks that differ in size between the ranks, and blocks that do not.
  template <typename T>
  void gather(const std::vector<std::size_t>& counts) {
    for (const bool alike : {true, false}) {
      std::vector<std::size_t> mine = counts;
      if (!alike) mine.front() += static_cast<std::size_t>(rank_) * 7;
      const Arrays<T> in = arrays_of<T>(rank_, mine);
      std::vector<Gathered<T>> right;
      std::vector<std::size_t> rooms;
      for (const std::vector<T>& block : in.before) {
        right.push_back(elastic::allgather(std::span<const T>(block)));
        rooms.push_back(right.back().values.size() + 3);
      }
      const Arrays<T> out = arrays_of<T>(100, rooms);
      const GatheredTensors result = elastic::grouped_allgather(
          views_of<T, ConstTensorView>(in), views_of<T, TensorView>(out), stream());
      check(result.contributors);
      for (std::size_t i = 0; i < counts.size(); ++i) {
        require(result.tensors[i].counts == right[i].counts, "other counts on the device");
        has(out, i, right[i].values, "grouped_allgather on the device");
      }
    }
  }

  /// Some tensors in host memory, and on one rank all of them; of several dtypes.
  void mixed() {
    const bool host = rank_ == size_ - 1;
    const std::vector<std::int64_t> longs = contribution<std::int64_t>(rank_, 100);
    const std::vector<float> floats = contribution<float>(rank_, 1003);
    const GpuArray<float> floats_on_device(gpu_, floats);
    const auto right_longs = elastic::allgather(longs).values;
    const auto right_floats = elastic::allgather(floats).values;
    std::vector<std::int64_t> all_longs(right_longs.size());
    std::vector<float> all_floats(right_floats.size());
    const GpuArray<float> all_on_device(gpu_, all_floats);
    const std::vector<ConstTensorView> blocks{
        view(std::span<const std::int64_t>(longs)),
        host ? view(std::span<const float>(floats)) : view_of(floats_on_device)};
    const std::vector<TensorView> outputs{
        view(std::span(all_longs)), host ? view(std::span(all_floats)) : view_of(all_on_device)};
    check(elastic::grouped_allgather(blocks, outputs, host ? CudaStream() : stream()).contributors);
    same(all_longs, right_longs, "a tensor in host memory beside one on a device");
    same(host ? all_floats : all_on_device.read(), right_floats, "a tensor beside one of the host");
  }

  void without_room() {
    const Arrays<float> in = arrays_of<float>(rank_, {100, 200});
    const auto members = static_cast<std::size_t>(size_);
    const Arrays<float> out = arrays_of<float>(100, {100, (200 + members - 1) / members - 1});
    must_fail(ErrorCode::kInvalidArgument, {"grouped_reduce_scatter, tensor 1: the largest part"},
              [&] {
                elastic::grouped_reduce_scatter(views_of<float, ConstTensorView>(in),
                                                views_of<float, TensorView>(out), ReduceOp::kSum,
                                                stream());
              });
    must_fail(ErrorCode::kInvalidArgument, {"grouped_allgather, tensor 1: the blocks of"}, [&] {
      const Arrays<float> all = arrays_of<float>(100, {100 * members, 200 * members - 1});
      try {
        elastic::grouped_allgather(views_of<float, ConstTensorView>(in),
                                   views_of<float, TensorView>(all), stream());
      } catch (const Error&) {
        has(all, 0, {}, "an output without room for another");
        throw;
      }
    });
    has(out, 0, {}, "an output without room for another");
  }

  /// Named calls of tensors on a device, all under way at once.
  void by_name() {
    const std::vector<float> data = contribution<float>(rank_, 5000);
    const auto right = elastic::reduce_scatter(data, ReduceOp::kAverage);
    const auto blocks = elastic::allgather(data);
    const std::vector<float> before =
        contribution<float>(100, 5000 * static_cast<unsigned>(size_) + 3);
    Context& context = elastic::context();
    const GpuArray<float> in(gpu_, data, 1);
    const GpuArray<float> out(gpu_, before);
    const GpuArray<float> all(gpu_, before);
    const GpuArray<float> sent(gpu_, data);
    const GpuArray<float> small(gpu_, std::vector<float>(1, 1.0F));
    const Work broadcast = context.broadcast_async("sent", view_of(sent), size_ - 1, stream());
    const auto gathered = context.allgather_async("all", view_of(in), view_of(all), stream());
    const auto part = context.reduce_scatter_async("part", view_of(in), view_of(out),
                                                   ReduceOp::kAverage, stream());
    const auto lost = context.allgather_async("lost", view_of(in), view_of(small), stream());
    check(broadcast.wait());
    same(sent.read(), contribution<float>(size_ - 1, 5000), "a named broadcast");
    require(gathered.wait().counts == blocks.counts, "counts of a named allgather");
    const auto with_rest = [&](std::vector<float> result) {
      result.insert(result.end(), before.begin() + static_cast<std::ptrdiff_t>(result.size()),
                    before.end());
      return result;
    };
    same(all.read(), with_rest(blocks.values), "a named allgather");
    const ScatteredPart scattered = part.wait();
    require(scattered.count == right.values.size() && scattered.offset == right.offset,
            "another part of a named reduce_scatter");
    same(out.read(), with_rest(right.values), "a named reduce_scatter");
    must_fail(ErrorCode::kInvalidArgument, {"allgather_async: the blocks of", "has room for 1"},
              [&] { (void)lost.wait(); });
    same(small.read(), std::vector<float>(1, 1.0F), "an output of a named call without room");
  }
};

}  // namespace elastic::testing
