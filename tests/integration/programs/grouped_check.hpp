#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/group.hpp>

#include "integration/programs/check_program.hpp"
#include "integration/programs/small_numbers.hpp"

namespace elastic::testing {

/// Makes grouped_reduce_scatter and grouped_allgather, right and wrong, and compares the results
/// with those of single calls, bit by bit.
class GroupedCheck {
 public:
  GroupedCheck(int rank, int size) : rank_(rank), size_(size) {}

  void run(ResultHash& hash) {
    for (const ReduceOp op : kOps) {
      reduce_scatter<float>(op, {70001, 0, 1, 12, 3, 5000});
      reduce_scatter<std::int64_t>(op, {5, 1003, 64});
    }
    reduce_scatter<std::int8_t>(ReduceOp::kMax, {});
    reduce_scatter<double>(ReduceOp::kSum, {17});
    allgather(hash, {0, 1, 3, 1003});
    allgather(hash, {70001, 2});
    in_one_place();
    queued();
    from_threads();
    of_a_group();
    without_room();
    refusals();
    if (size_ > 1) mismatches();
  }

 private:
  template <typename T>
  static std::vector<std::vector<T>> tensors_of(int rank, const std::vector<std::size_t>& counts) {
    std::vector<std::vector<T>> tensors;
    for (const std::size_t count : counts) {
      tensors.push_back(small_numbers::contribution<T>(rank, count));
    }
    return tensors;
  }
  template <typename T>
  static std::vector<ConstTensorView> inputs_of(const std::vector<std::vector<T>>& tensors) {
    std::vector<ConstTensorView> views;
    for (const std::vector<T>& each : tensors) views.push_back(view(std::span<const T>(each)));
    return views;
  }
  template <typename T>
  static std::vector<TensorView> outputs_of(std::vector<std::vector<T>>& tensors) {
    std::vector<TensorView> views;
    for (std::vector<T>& each : tensors) views.push_back(view(std::span<T>(each)));
    return views;
  }
  std::size_t largest(std::size_t count) const {
    const auto members = static_cast<std::size_t>(size_);
    return (count + members - 1) / members;
  }
  void check(const Contributors& contributors) const {
    require(contributors.size() == static_cast<std::size_t>(size_), "not all contributed");
  }

  template <typename T>
  void reduce_scatter(ReduceOp op, const std::vector<std::size_t>& counts) {
    const auto inputs = tensors_of<T>(rank_, counts);
    std::vector<std::vector<T>> outputs;
    for (const std::size_t count : counts) outputs.emplace_back(largest(count) + 3, T(77));
    const ScatteredTensors result =
        elastic::grouped_reduce_scatter(inputs_of(inputs), outputs_of(outputs), op);
    check(result.contributors);
    require(result.tensors.size() == counts.size(), "a part for each tensor");
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto right = elastic::reduce_scatter(std::span<const T>(inputs[i]), op);
      const ScatteredPart& part = result.tensors[i];
      check(part.contributors);
      require(part.count == right.values.size() && part.offset == right.offset,
              "another part in a group");
      std::vector<T> whole = right.values;
      whole.resize(outputs[i].size(), T(77));
      require(same_bits(outputs[i], whole), "grouped_reduce_scatter, tensor " + std::to_string(i));
      require(same_bits(inputs[i], small_numbers::contribution<T>(rank_, counts[i])),
              "grouped_reduce_scatter changed an input");
    }
  }

  /// Ranks differ in the sizes of their blocks, and tensors in their dtypes.
  void allgather(ResultHash& hash, const std::vector<std::size_t>& counts) {
    std::vector<std::size_t> mine = counts;
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] += static_cast<std::size_t>(rank_) * i;
    const auto floats = tensors_of<float>(rank_, mine);
    const auto bytes = tensors_of<std::uint8_t>(rank_, counts);
    std::vector<ConstTensorView> blocks = inputs_of(floats);
    for (const ConstTensorView& block : inputs_of(bytes)) blocks.push_back(block);
    std::vector<Gathered<float>> right;
    std::vector<Gathered<std::uint8_t>> right_bytes;
    std::vector<std::vector<float>> out;
    std::vector<std::vector<std::uint8_t>> out_bytes;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      right.push_back(elastic::allgather(floats[i]));
      right_bytes.push_back(elastic::allgather(bytes[i]));
      out.emplace_back(right[i].values.size() + 3, 77.0F);
      out_bytes.emplace_back(right_bytes[i].values.size());
    }
    std::vector<TensorView> outputs = outputs_of(out);
    for (const TensorView& each : outputs_of(out_bytes)) outputs.push_back(each);
    const GatheredTensors result = elastic::grouped_allgather(blocks, outputs);
    check(result.contributors);
    require(result.tensors.size() == outputs.size(), "blocks of each tensor");
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::string what = "grouped_allgather, tensor " + std::to_string(i);
      check(result.tensors[i].contributors);
      require(result.tensors[i].counts == right[i].counts &&
                  result.tensors[i].count == right[i].values.size(),
              what + ": other counts");
      std::vector<float> whole = right[i].values;
      whole.resize(out[i].size(), 77.0F);
      require(same_bits(out[i], whole), what);
      require(result.tensors[counts.size() + i].counts == right_bytes[i].counts, what + ": bytes");
      require(out_bytes[i] == right_bytes[i].values, what + ": bytes");
      hash.add(out[i]);
    }
  }

  /// Inputs that are parts of the outputs, as in sharded training.
  void in_one_place() {
    const std::size_t share = 100;
    const auto members = static_cast<std::size_t>(size_);
    auto tensors = tensors_of<float>(rank_, {share * members, 2 * share * members});
    const auto right = elastic::reduce_scatter(tensors[1]);
    std::vector<TensorView> outputs;
    for (std::vector<float>& each : tensors) {
      const std::span<float> all(each);
      const std::size_t part = each.size() / members;
      outputs.push_back(view(all.subspan(static_cast<std::size_t>(rank_) * part, part)));
    }
    check(elastic::grouped_reduce_scatter(inputs_of(tensors), outputs).contributors);
    const std::span<const float> own(static_cast<const float*>(outputs[1].data), outputs[1].count);
    require(std::vector<float>(own.begin(), own.end()) == right.values, "parts in place");
    check(elastic::grouped_allgather(outputs, outputs_of(tensors)).contributors);
    std::vector<float> sums = small_numbers::contribution<float>(rank_, tensors[1].size());
    elastic::allreduce(sums);
    require(tensors[1] == sums, "reduce_scatter and allgather in place");
  }

  /// Asynchronous calls keep the program order.
  void queued() {
    const auto inputs = tensors_of<float>(rank_, {1000, 30});
    std::vector<std::vector<float>> parts{std::vector<float>(1000), std::vector<float>(30)};
    const auto scattered =
        elastic::grouped_reduce_scatter_async(inputs_of(inputs), outputs_of(parts));
    const auto blocks = tensors_of<std::int32_t>(rank_, {7, 9});
    const auto members = static_cast<std::size_t>(size_);
    std::vector<std::vector<std::int32_t>> all{std::vector<std::int32_t>(7 * members),
                                               std::vector<std::int32_t>(9 * members)};
    const auto gathered = elastic::grouped_allgather_async(inputs_of(blocks), outputs_of(all));
    require(gathered.wait().tensors[1].count == 9 * members, "a queued grouped_allgather");
    require(all[1] == elastic::allgather(blocks[1]).values, "a queued grouped_allgather");
    const ScatteredTensors result = scattered.wait();
    const auto right = elastic::reduce_scatter(inputs[0]);
    parts[0].resize(result.tensors[0].count);
    require(parts[0] == right.values && result.tensors[0].offset == right.offset,
            "a queued grouped_reduce_scatter");
  }

  /// Two threads wait for calls that a third has started, while this one makes named calls.
  void from_threads() {
    constexpr int kCalls = 20;
    const auto inputs = tensors_of<float>(rank_, {300, 40});
    const auto right = elastic::reduce_scatter(inputs[0]).values;
    std::vector<std::vector<std::vector<float>>> parts(
        kCalls, {std::vector<float>(300), std::vector<float>(40)});
    std::vector<Pending<ScatteredTensors>> calls;
    for (auto& each : parts) {
      calls.push_back(elastic::grouped_reduce_scatter_async(inputs_of(inputs), outputs_of(each)));
    }
    std::vector<std::thread> threads;
    for (int begin = 0; begin < 2; ++begin) {
      threads.emplace_back([&, begin] {
        for (std::size_t i = static_cast<std::size_t>(begin); i < kCalls; i += 2) {
          check(calls[i].wait().contributors);
          parts[i][0].resize(right.size());
          require(parts[i][0] == right, "a part that another thread waits for");
        }
      });
    }
    std::vector<float> sums(100, 1);
    for (int i = 0; i < kCalls; ++i) {
      sums.assign(100, 1);
      elastic::allreduce_async("beside groups", sums).wait();
      require(sums[99] == static_cast<float>(size_), "a named call beside grouped ones");
    }
    for (std::thread& thread : threads) thread.join();
  }

  /// Every second rank makes them among themselves.
  void of_a_group() {
    Group& group = elastic::context().group(GroupRule::every(2));
    if (group.rank() < 0) return;
    const auto members = static_cast<std::size_t>(group.size());
    const auto inputs = tensors_of<float>(rank_, {30, 7});
    std::vector<std::vector<float>> parts{std::vector<float>(30), std::vector<float>(7)};
    const ScatteredTensors scattered =
        group.grouped_reduce_scatter(inputs_of(inputs), outputs_of(parts));
    const auto right = group.reduce_scatter(inputs[1]);
    parts[1].resize(right.values.size());
    require(scattered.contributors.size() == members && parts[1] == right.values,
            "grouped_reduce_scatter of a group");
    std::vector<std::vector<float>> all{std::vector<float>(30 * members),
                                        std::vector<float>(7 * members)};
    const GatheredTensors gathered = group.grouped_allgather(inputs_of(inputs), outputs_of(all));
    require(gathered.contributors.size() == members && all[1] == group.allgather(inputs[1]).values,
            "grouped_allgather of a group");
  }

  /// All outputs stay as they were, and the job goes on.
  void without_room() {
    const auto inputs = tensors_of<float>(rank_, {100, 200});
    std::vector<std::vector<float>> outputs{std::vector<float>(100, 5),
                                            std::vector<float>(largest(200) - 1, 5)};
    must_fail(ErrorCode::kInvalidArgument,
              {"grouped_reduce_scatter, tensor 1: the largest part of 200 elements for " +
                   std::to_string(size_) + " members has " + std::to_string(largest(200)),
               "room for " + std::to_string(largest(200) - 1)},
              [&] { elastic::grouped_reduce_scatter(inputs_of(inputs), outputs_of(outputs)); });
    require(outputs[0] == std::vector<float>(100, 5), "an output after a call without room");
    const auto members = static_cast<std::size_t>(size_);
    std::vector<std::vector<float>> all{std::vector<float>(100 * members, 5),
                                        std::vector<float>(200 * members - 1, 5)};
    must_fail(ErrorCode::kInvalidArgument,
              {"grouped_allgather, tensor 1: the blocks of", "room for"},
              [&] { elastic::grouped_allgather(inputs_of(inputs), outputs_of(all)); });
    require(all[0] == std::vector<float>(100 * members, 5), "an output after one without room");
  }

  /// Calls that each rank refuses by itself.
  void refusals() {
    const auto inputs = tensors_of<float>(rank_, {10, 20});
    const auto doubles = tensors_of<double>(rank_, {10});
    std::vector<std::vector<float>> outputs{std::vector<float>(10), std::vector<float>(20)};
    const std::vector<TensorView> to = outputs_of(outputs);
    const auto refused = [](const std::vector<std::string>& words, const auto& call) {
      must_fail(ErrorCode::kInvalidArgument, words, call);
    };
    refused({"grouped_reduce_scatter: the number of inputs is 2, that of outputs 1"},
            [&] { elastic::grouped_reduce_scatter(inputs_of(inputs), std::span(to).first(1)); });
    std::vector<std::vector<double>> wide{std::vector<double>(10)};
    const std::vector<ConstTensorView> mixed{inputs_of(inputs)[0], inputs_of(doubles)[0]};
    refused({"grouped_reduce_scatter, tensor 1 is f64, and tensor 0 f32", "one call for each"},
            [&] {
              const std::vector<TensorView> both{to[0], outputs_of(wide)[0]};
              elastic::grouped_reduce_scatter(mixed, both);
            });
    refused({"grouped_allgather, tensor 1: input and output differ in dtype"},
            [&] { elastic::grouped_allgather(mixed, to); });
    refused({"grouped_allgather, outputs: tensors 0 and 1 overlap"}, [&] {
      const std::vector<TensorView> same{to[0], to[0]};
      elastic::grouped_allgather(inputs_of(inputs), same);
    });
    refused({"grouped_allgather, tensor 1, input: 20 elements of 4 bytes lie at a null pointer"},
            [&] {
              std::vector<ConstTensorView> blocks = inputs_of(inputs);
              blocks[1].data = nullptr;
              elastic::grouped_allgather(blocks, to);
            });
    refused({"grouped_reduce_scatter: kAdasum"},
            [&] { elastic::grouped_reduce_scatter(inputs_of(inputs), to, ReduceOp::kAdasum); });
  }

  /// Calls that do not match those of other ranks, which all learn.
  void mismatches() {
    const bool odd = rank_ == size_ - 1;
    const std::string other = "but rank " + std::to_string(size_ - 1) + " called ";
    const auto inputs = tensors_of<float>(rank_, {10, 20, 30});
    std::vector<std::vector<float>> outputs(3, std::vector<float>(30 * 10, 5));
    const auto from = inputs_of(inputs);
    const auto to = outputs_of(outputs);
    const auto first = [&](std::size_t tensors, const auto& call) {
      call(std::span(from).first(tensors), std::span(to).first(tensors));
    };
    const auto scatter = [](auto blocks, auto parts) {
      elastic::grouped_reduce_scatter(blocks, parts);
    };
    const auto gather = [](auto blocks, auto all) { elastic::grouped_allgather(blocks, all); };
    must_fail(ErrorCode::kMismatch,
              {"rank 0 called grouped_reduce_scatter of 3 tensors, 60 elements, sum",
               other + "grouped_reduce_scatter of 2 tensors, 30 elements, sum"},
              [&] { first(odd ? 2 : 3, scatter); });
    must_fail(ErrorCode::kMismatch,
              {"grouped_allgather of 3 tensors", other + "grouped_allgather of 1 tensor"},
              [&] { first(odd ? 1 : 3, gather); });
    must_fail(ErrorCode::kMismatch,
              {"grouped_reduce_scatter of 1 tensor, 10 elements, sum",
               other + "reduce_scatter of 10 f32, sum"},
              [&] {
                if (odd) elastic::reduce_scatter(inputs[0]);
                if (!odd) first(1, scatter);
              });
    must_fail(ErrorCode::kMismatch, {"grouped_allgather of 2 tensors", other + "allgather of f32"},
              [&] {
                if (odd) elastic::allgather(inputs[0]);
                if (!odd) first(2, gather);
              });
    must_fail(ErrorCode::kMismatch, {"of 2 tensors, 30 elements, sum", "with other shapes"}, [&] {
      const std::vector<ConstTensorView> swapped{from[1], from[0]};
      elastic::grouped_reduce_scatter(odd ? swapped : std::vector(from.begin(), from.begin() + 2),
                                      std::span(to).first(2));
    });
    require(outputs == std::vector<std::vector<float>>(3, std::vector<float>(30 * 10, 5)),
            "an output after a mismatch");
    require(inputs == tensors_of<float>(rank_, {10, 20, 30}), "an input after a mismatch");
  }

  const int rank_;
  const int size_;
};

}  // namespace elastic::testing
