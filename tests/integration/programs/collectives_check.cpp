// A worker that makes every collective of the public API and compares each result with what it
// computes by itself. Writes a hash over all results to <log>/<rank>, for the test to compare.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

#include "integration/programs/check_program.hpp"
#include "integration/programs/grouped_check.hpp"
#include "integration/programs/location_check.hpp"
#include "integration/programs/small_numbers.hpp"
#include "integration/programs/sparse_check.hpp"

namespace {

using elastic::bfloat16;
using elastic::Contributors;
using elastic::Element;
using elastic::ErrorCode;
using elastic::float16;
using elastic::ReduceOp;
using elastic::TensorView;
using elastic::WorkerId;
using elastic::testing::fail;
using elastic::testing::for_each_dtype;
using elastic::testing::kOps;
using elastic::testing::must_fail;
using elastic::testing::require;
using elastic::testing::ResultHash;
using elastic::testing::same_bits;
using elastic::testing::write_result;
using elastic::testing::small_numbers::contribution;
using elastic::testing::small_numbers::expected;
using elastic::testing::small_numbers::Wide;

constexpr std::size_t kCounts[] = {0, 1, 2, 5, 1003, 70001};

/// Under elasticrun, or under mpirun.
int from_launcher(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    if (const char* value = std::getenv(variable)) return std::atoi(value);
  }
  fail("start me with elasticrun or mpirun");
}

class Checks {
 public:
  explicit Checks(std::string folder)
      : folder_(std::move(folder)), rank_(elastic::rank()), size_(elastic::size()) {}

  void run() {
    membership();
    barrier();
    for_each_dtype([this]<typename T>() { allreduce<T>(); });
    rounding();
    grouped();
    sample_average();
    named();
    named_group();
    broadcast();
    allgather();
    reduce_scatter();
    elastic::testing::GroupedCheck(rank_, size_).run(hash_);
    alltoall();
    gather_and_scatter();
    reduce();
    scan();
    refusals_on_all();
    elastic::testing::SparseCheck(elastic::context(), rank_, size_).run(hash_);
    hash_.add(elastic::testing::check_locations(rank_, size_));
    in_program_order();
    by_name();
    refusals_by_name();
    ranges();
    write_result(folder_, hash_);
  }

 private:
  template <typename T>
  void check(const std::vector<T>& result, ReduceOp op, const std::string& what) {
    compare(result, op, what);
    hash_.add(result);
  }

  /// For a result that not all ranks have.
  template <typename T>
  void compare(const std::vector<T>& result, ReduceOp op, const std::string& what) {
    const std::vector<T> right = expected<T>(size_, result.size(), op);
    for (std::size_t i = 0; i < right.size(); ++i) {
      // Values are compared, not bits: -0.0 equals 0.0.
      if (static_cast<Wide<T>>(result[i]) == static_cast<Wide<T>>(right[i])) continue;
      fail(what + ": op " + std::to_string(static_cast<int>(op)) + ", type of " +
           std::to_string(sizeof(T)) + " bytes, element " + std::to_string(i) + " of " +
           std::to_string(right.size()) + " is " +
           std::to_string(static_cast<double>(static_cast<Wide<T>>(result[i]))) + ", not " +
           std::to_string(static_cast<double>(static_cast<Wide<T>>(right[i]))));
    }
  }

  void check(const Contributors& contributors) {
    require(contributors.size() == static_cast<std::size_t>(size_), "not all contributed");
    require(contributors.generation() == elastic::generation(), "contributors' generation");
    require(contributors.workers()[static_cast<std::size_t>(rank_)] == elastic::context().id(),
            "contributors are not in rank order");
  }

  /// Calls with containers and arrays of elements in place of spans, and with single numbers.
  void ranges() {
    const std::vector<float> ones(5, 1);
    const std::vector<float> sums(5, static_cast<float>(size_));
    std::vector<float> vector = ones;
    elastic::allreduce(vector);
    require(vector == sums, "allreduce of a vector");
    std::array<float, 5> array{1, 1, 1, 1, 1};
    elastic::allreduce(array, ReduceOp::kMax);
    require(array[4] == 1, "allreduce of an array");
    elastic::allreduce(std::span<float, 5>(array));
    require(array[4] == sums[4], "allreduce of a span of fixed extent");
    float plain[5] = {};
    elastic::allreduce(ones, plain);
    require(plain[4] == sums[4], "allreduce of a constant vector into an array");
    elastic::allreduce(std::span<const float, 5>(ones), vector);
    require(vector == sums, "allreduce of a constant span of fixed extent");
    require(elastic::allreduce(1.5) == 1.5 * size_, "allreduce of a double");
    require(elastic::allreduce(rank_, ReduceOp::kMax) == size_ - 1, "allreduce of an int");
    vector = ones;
    elastic::allreduce_async("a vector", vector).wait();
    require(vector == sums, "named allreduce of a vector");
    elastic::broadcast(array, 0);
    require(elastic::allgather(ones).values.size() == 5 * static_cast<std::size_t>(size_),
            "allgather of a vector");
    const auto part = elastic::reduce_scatter(ones).values;
    require(std::count(part.begin(), part.end(), sums[0]) == static_cast<long>(part.size()),
            "reduce_scatter of a vector");
  }

  void membership() {
    const int slot = from_launcher({"RANK", "OMPI_COMM_WORLD_RANK"});
    require(rank_ == slot, "the rank in the first view is not the slot");
    require(size_ == from_launcher({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"}), "size");
    require(elastic::local_rank() == slot && elastic::local_size() == size_, "local rank and size");
    require(elastic::generation() == 1, "generation of the first view");
  }

  void barrier() {
    std::ofstream(folder_ + "/came." + std::to_string(rank_)) << "here" << std::endl;
    check(elastic::barrier());
    for (int rank = 0; rank < size_; ++rank) {
      require(std::filesystem::exists(folder_ + "/came." + std::to_string(rank)),
              "passed the barrier before rank " + std::to_string(rank) + " came to it");
    }
  }

  template <Element T>
  void allreduce() {
    for (const ReduceOp op : kOps) {
      for (const std::size_t count : kCounts) {
        const std::vector<T> mine = contribution<T>(rank_, count);
        std::vector<T> data = mine;
        check(elastic::allreduce(std::span<T>(data), op));
        check(data, op, "allreduce in place");
        std::vector<T> out(count);
        check(elastic::allreduce(std::span<const T>(mine), std::span<T>(out), op));
        require(same_bits(out, data), "allreduce out of place differs from in place");
        require(same_bits(mine, contribution<T>(rank_, count)), "allreduce changed its input");
        const elastic::Allocation memory = elastic::allocate(count * sizeof(T));
        std::copy(mine.begin(), mine.end(), memory.as<T>().begin());
        check(elastic::allreduce(memory.as<T>(), op));
        require(same_bits(std::vector<T>(memory.as<T>().begin(), memory.as<T>().end()), data),
                "allreduce in allocated memory differs from others");
      }
    }
  }

  /// Sums that depend on the order of the additions: any order is right, the same on all ranks.
  void rounding() {
    std::mt19937 random(static_cast<unsigned>(rank_));
    std::uniform_real_distribution<float> number(-1000.0F, 1000.0F);
    std::vector<float> floats(30011);
    std::vector<bfloat16> halves(30011);
    for (float& value : floats) value = number(random);
    for (bfloat16& value : halves) value = bfloat16(number(random));
    check(elastic::allreduce(std::span<float>(floats)));
    check(elastic::allreduce(std::span<bfloat16>(halves), ReduceOp::kAverage));
    hash_.add(floats);
    hash_.add(halves);
  }

  struct Group {
    std::vector<float> floats;
    std::vector<std::int32_t> ints;
    std::vector<float16> halves;
    std::vector<double> doubles;
    std::vector<std::uint8_t> bytes;

    explicit Group(int rank)
        : floats(contribution<float>(rank, 1001)),
          ints(contribution<std::int32_t>(rank, 3)),
          halves(contribution<float16>(rank, 17)),
          doubles(contribution<double>(rank, 0)),
          bytes(contribution<std::uint8_t>(rank, 4097)) {}

    std::vector<TensorView> views() {
      return {elastic::view(std::span<float>(floats)), elastic::view(std::span<std::int32_t>(ints)),
              elastic::view(std::span<float16>(halves)), elastic::view(std::span<double>(doubles)),
              elastic::view(std::span<std::uint8_t>(bytes))};
    }
  };

  void check(const Group& group, ReduceOp op, const std::string& what) {
    check(group.floats, op, what);
    check(group.ints, op, what);
    check(group.halves, op, what);
    check(group.doubles, op, what);
    check(group.bytes, op, what);
  }

  void grouped() {
    for (const ReduceOp op : kOps) {
      Group group(rank_);
      const std::vector<TensorView> views = group.views();
      check(elastic::grouped_allreduce(views, op));
      check(group, op, "grouped_allreduce");
    }
    check(elastic::grouped_allreduce({}));
  }

  /// Batches are unequal: the last worker has no samples left, and a single worker has none either.
  void sample_average() {
    const auto samples_of = [this](int rank) {
      return static_cast<std::uint64_t>(size_ - 1 - rank);
    };
    std::uint64_t samples = 0;
    std::uint64_t sum = 0;
    for (int rank = 0; rank < size_; ++rank) {
      samples += samples_of(rank);
      sum += samples_of(rank) * static_cast<std::uint64_t>(rank);
    }
    std::vector<double> mean(3, static_cast<double>(samples_of(rank_)) * rank_);
    const std::vector<TensorView> tensors{elastic::view(std::span(mean))};
    const auto average =
        elastic::average_by_samples(elastic::context(), tensors, samples_of(rank_));
    check(average.contributors);
    require(average.samples == samples, "samples miscounted");
    const double right = samples > 0 ? static_cast<double>(sum) / static_cast<double>(samples) : 0;
    require(same_bits(mean, std::vector<double>(3, right)), "not the mean over samples");
  }

  /// Several threads submit, in an order of their own on each rank; twice, as steps do.
  void named() {
    constexpr std::size_t kThreads = 3;
    constexpr std::size_t kEach = 8;
    for (int step = 0; step < 2; ++step) {
      std::vector<std::vector<float>> tensors(kThreads * kEach);
      std::vector<elastic::Work> works(tensors.size());
      for (std::size_t i = 0; i < tensors.size(); ++i)
        tensors[i] = contribution<float>(rank_, i * 211);
      std::vector<std::thread> threads;
      for (std::size_t thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] { submit(tensors, works, thread * kEach, kEach, step); });
      }
      for (std::thread& thread : threads) thread.join();
      for (std::size_t i = 0; i < works.size(); ++i) {
        check(works[i].wait());
        require(works[i].ready() && works[i].wait_for(std::chrono::seconds(0)),
                "not ready after wait");
        check(works[i].contributors());
        check(tensors[i], i % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMax, "named allreduce");
      }
    }
  }

  void submit(std::vector<std::vector<float>>& tensors, std::vector<elastic::Work>& works,
              std::size_t first, std::size_t count, int step) const {
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = first + i;
    std::mt19937 random(static_cast<unsigned>(rank_ * 100 + step) + static_cast<unsigned>(first));
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      works[i] =
          elastic::allreduce_async("tensor " + std::to_string(i), std::span<float>(tensors[i]),
                                   i % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMax);
    }
  }

  void named_group() {
    Group group(rank_);
    const std::vector<TensorView> views = group.views();
    std::vector<std::int64_t> single = contribution<std::int64_t>(rank_, 9);
    elastic::Work other;
    if (rank_ % 2 == 0) other = elastic::allreduce_async("single", std::span<std::int64_t>(single));
    const elastic::Work work = elastic::grouped_allreduce_async("group", views, ReduceOp::kAverage);
    if (rank_ % 2 == 1) other = elastic::allreduce_async("single", std::span<std::int64_t>(single));
    // An unnamed call in between: the two kinds do not wait for each other.
    check(elastic::barrier());
    check(work.wait());
    check(other.wait());
    check(group, ReduceOp::kAverage, "named group");
    check(single, ReduceOp::kSum, "named single");
  }

  void broadcast() {
    for (int root = 0; root < size_; ++root) {
      for (const std::size_t count : kCounts) {
        std::vector<bfloat16> data = contribution<bfloat16>(rank_, count);
        check(elastic::broadcast(std::span<bfloat16>(data), root));
        require(same_bits(data, contribution<bfloat16>(root, count)),
                "broadcast from rank " + std::to_string(root));
      }
    }
    broadcast_from();
  }

  void broadcast_from() {
    const Contributors members = elastic::members();
    require(members.size() == static_cast<std::size_t>(size_) &&
                members.workers()[static_cast<std::size_t>(rank_)] == elastic::context().id(),
            "the members");
    std::vector<float> data = contribution<float>(rank_, 1003);
    const WorkerId last = members.workers().back();
    check(elastic::broadcast_from(data, last));
    require(data == contribution<float>(size_ - 1, 1003), "broadcast from a worker");
    must_fail("a broadcast from no member", ErrorCode::kRootLost, {"is no member; choose a root"},
              [&] { elastic::broadcast_from(data, last + 1); });
    if (size_ == 1) return;
    must_fail("broadcasts from two workers", ErrorCode::kMismatch, {"the worker of rank"}, [&] {
      elastic::broadcast_from(data, rank_ == 0 ? last : members.workers().front());
    });
    require(data == contribution<float>(size_ - 1, 1003), "data after broadcasts that failed");
  }

  static std::size_t block_size(int rank, int round) {
    return static_cast<std::size_t>((rank + round) * 7 % 5) * (round == 3 ? 4001U : 1U);
  }

  /// Blocks of different sizes, some of them empty; in one round all of them.
  void allgather() {
    for (int round = 0; round < 5; ++round) {
      const auto count = [&](int rank) { return round == 4 ? 0 : block_size(rank, round); };
      const std::vector<std::int32_t> mine = contribution<std::int32_t>(rank_, count(rank_));
      const auto gathered = elastic::allgather(std::span<const std::int32_t>(mine));
      std::vector<std::int32_t> right;
      std::vector<std::size_t> counts;
      for (int rank = 0; rank < size_; ++rank) {
        const std::vector<std::int32_t> block = contribution<std::int32_t>(rank, count(rank));
        right.insert(right.end(), block.begin(), block.end());
        counts.push_back(block.size());
      }
      require(gathered.values == right && gathered.counts == counts, "allgather");
      check(gathered.contributors);
      hash_.add(gathered.values);
    }
  }

  void reduce_scatter() {
    for (const ReduceOp op : kOps) {
      for (const std::size_t count : kCounts) {
        const std::vector<float16> mine = contribution<float16>(rank_, count);
        const auto part = elastic::reduce_scatter(std::span<const float16>(mine), op);
        check(part.contributors);
        const std::size_t least = count / static_cast<std::size_t>(size_);
        require(part.values.size() >= least && part.values.size() <= least + 1,
                "parts of a reduce_scatter are of nearly equal sizes");
        const std::int64_t offset = static_cast<std::int64_t>(part.offset);
        const auto offsets = elastic::allgather(std::span<const std::int64_t>(&offset, 1));
        const auto whole = elastic::allgather(std::span<const float16>(part.values));
        std::size_t next = 0;
        for (std::size_t rank = 0; rank < whole.counts.size(); ++rank) {
          require(
              whole.counts[rank] == 0 || offsets.values[rank] == static_cast<std::int64_t>(next),
              "parts of a reduce_scatter do not cover the tensor");
          next += whole.counts[rank];
        }
        require(next == count, "parts of a reduce_scatter do not cover the tensor");
        check(whole.values, op, "reduce_scatter");
      }
    }
  }

  /// Elements that one rank gives another.
  static std::size_t given(int from, int to, std::size_t scale) {
    return static_cast<std::size_t>((from * 3 + to * 5) % 4) * scale;
  }
  static std::vector<std::int32_t> block(int from, int to, std::size_t count) {
    return std::vector<std::int32_t>(count, from * 1000 + to);
  }

  void alltoall() {
    for (const std::size_t scale : std::vector<std::size_t>{0, 1, 1003, 70001}) {
      std::vector<std::size_t> counts;
      std::vector<std::size_t> right_counts;
      std::vector<std::int32_t> mine;
      std::vector<std::int32_t> right;
      for (int rank = 0; rank < size_; ++rank) {
        counts.push_back(given(rank_, rank, scale));
        right_counts.push_back(given(rank, rank_, scale));
        append(mine, block(rank_, rank, counts.back()));
        append(right, block(rank, rank_, right_counts.back()));
      }
      const auto all = elastic::alltoall(mine, counts);
      require(all.values == right && all.counts == right_counts, "alltoall");
      check(all.contributors);
      std::vector<std::int32_t> out(right.size() + 1, -1);
      const auto blocks = elastic::alltoall(
          {elastic::view(std::span(std::as_const(mine))), counts, elastic::context().members()},
          elastic::view(std::span(out)));
      right.push_back(-1);
      require(out == right && blocks.counts == right_counts, "alltoall into a tensor");
    }
    const auto equal = elastic::alltoall(std::vector<std::int64_t>(at(size_) * 3, rank_));
    for (int rank = 0; rank < size_; ++rank) {
      require(equal.values[at(rank) * 3 + 2] == rank && equal.counts[at(rank)] == 3,
              "alltoall of equal blocks");
    }
  }

  void gather_and_scatter() {
    for (int root = 0; root < size_; ++root) {
      for (const std::size_t scale : std::vector<std::size_t>{0, 1, 1003}) {
        std::vector<std::size_t> counts;
        std::vector<std::int32_t> whole;
        for (int rank = 0; rank < size_; ++rank) {
          counts.push_back(given(root, rank, scale));
          append(whole, block(root, rank, counts.back()));
        }
        const std::vector<std::int32_t> mine = block(root, rank_, counts[at(rank_)]);
        const auto gathered = elastic::gather(mine, root);
        require(gathered.values == (rank_ == root ? whole : std::vector<std::int32_t>()), "gather");
        require(rank_ != root || gathered.counts == counts, "counts of a gather");
        check(gathered.contributors);
        if (rank_ != root) whole.clear();
        if (rank_ != root) counts.clear();
        const elastic::WorkerId worker = elastic::context().members().workers()[at(root)];
        const auto part = elastic::scatter(whole, elastic::Root::worker(worker), counts);
        require(part.values == mine, "scatter");
        check(part.contributors);
        std::vector<std::int32_t> out(mine.size() + 1, -1);
        const auto placed =
            elastic::scatter({elastic::view(std::span(std::as_const(whole))), counts},
                             elastic::view(std::span(out)), root);
        require(placed.count == mine.size() && out.back() == -1, "scatter into a tensor");
      }
    }
  }

  void reduce() {
    for (const ReduceOp op : kOps) {
      for (const std::size_t count : kCounts) {
        const int root = static_cast<int>(count) % size_;
        const std::vector<float16> before = contribution<float16>(rank_, count);
        std::vector<float16> data = before;
        check(elastic::reduce(data, root, op));
        if (rank_ == root) {
          compare(data, op, "reduce");
        } else {
          require(same_bits(data, before), "reduce changes a tensor that is not the root's");
        }
      }
    }
  }

  void scan() {
    for (const std::size_t count : kCounts) {
      std::vector<std::int64_t> data(count, rank_ + 1);
      check(elastic::scan(data));
      require(data == std::vector<std::int64_t>(count, (rank_ + 1) * (rank_ + 2) / 2), "scan");
      const std::vector<double> mine(count, rank_);
      std::vector<double> out(count, -1);
      elastic::exscan(elastic::view(std::span(mine)), elastic::view(std::span(out)),
                      ReduceOp::kMax);
      const double right = rank_ == 0 ? -std::numeric_limits<double>::infinity() : rank_ - 1;
      require(out == std::vector<double>(count, right), "exscan");
      std::vector<std::int32_t> mean(count, 2 * rank_);
      elastic::scan(mean, ReduceOp::kAverage);
      require(mean == std::vector<std::int32_t>(count, rank_), "scan of averages");
    }
  }

  /// One rank cannot make its call: all learn why.
  void refusals_on_all() {
    const std::vector<float> data(at(size_), 1);
    const std::vector<std::size_t> wrong(at(size_) + 1, 1);
    const std::string last = "rank " + std::to_string(size_ - 1) + " gave ";
    must_fail(ErrorCode::kMismatch, {last, std::to_string(size_ + 1) + " blocks for the"}, [&] {
      elastic::alltoall(data,
                        rank_ == size_ - 1 ? std::span(wrong) : std::span(wrong).first(at(size_)));
    });
    must_fail(ErrorCode::kMismatch, {last, "do not add up to the"}, [&] {
      const std::vector<std::size_t> ones(at(size_), 1);
      elastic::alltoall(rank_ == size_ - 1 ? std::vector<float>(at(size_) + 5) : data, ones);
    });
    must_fail(ErrorCode::kMismatch, {"gather: root", "is no rank"},
              [&] { elastic::gather(data, rank_ == 0 ? size_ : 0); });
  }

  /// Asynchronous calls without a name.
  void in_program_order() {
    elastic::Context& context = elastic::context();
    std::vector<std::int64_t> sum(1000, rank_);
    std::vector<std::int64_t> sent(5, rank_);
    const std::vector<std::int32_t> block(3, rank_);
    std::vector<std::int32_t> room(at(size_) * 3);
    std::vector<std::int64_t> up_to(2, 1);
    std::vector<std::int64_t> before(2, 1);
    const std::vector<std::int32_t> blocks(at(size_), rank_);
    std::vector<elastic::Work> works;
    works.push_back(context.allreduce_async(elastic::view(std::span(sum))));
    std::vector<std::int64_t> vector(1000, rank_);
    const std::vector<std::int64_t> input(3, rank_);
    std::array<std::int64_t, 3> greatest{};
    std::array<std::int64_t, 3> least{};
    works.push_back(context.allreduce_async(vector));
    works.push_back(elastic::allreduce_async(std::span(vector).first(10), ReduceOp::kMax));
    works.push_back(context.allreduce_async(input, greatest, ReduceOp::kMax));
    works.push_back(
        context.allreduce_async(std::span(input), std::span<std::int64_t>(least), ReduceOp::kMin));
    works.push_back(context.broadcast_async(elastic::view(std::span(sent)), size_ - 1));
    const auto gathered =
        context.allgather_async(elastic::view(std::span(block)), elastic::view(std::span(room)));
    const auto exchanged = context.alltoall_async(std::span(blocks));
    works.push_back(
        context.scan_async(elastic::view(std::span(up_to)), elastic::view(std::span(up_to))));
    works.push_back(
        context.exscan_async(elastic::view(std::span(before)), elastic::view(std::span(before))));
    works.push_back(context.barrier_async());
    std::atomic<int> called{0};
    works.back().then([&](const elastic::Work& work) { called += work.ready() ? 1 : 100; });
    require(elastic::wait_any(works) < works.size(), "wait_any");
    elastic::wait_all(works);
    for (const elastic::Work& work : works) check(work.contributors());
    require(sum == std::vector<std::int64_t>(1000, size_ * (size_ - 1) / 2), "allreduce_async");
    require(vector == sum, "allreduce_async of a vector and of a part of it");
    const std::int64_t last = size_ - 1;
    require(greatest == std::array{last, last, last} && least == std::array<std::int64_t, 3>{},
            "allreduce_async from a vector to an array");
    require(sent == std::vector<std::int64_t>(5, size_ - 1), "broadcast_async");
    require(gathered.wait().count == room.size() && room.back() == size_ - 1, "allgather_async");
    const auto received = exchanged.wait();
    check(received.contributors);
    for (int rank = 0; rank < size_; ++rank) {
      require(received.values[at(rank)] == rank, "alltoall_async");
    }
    require(up_to.front() == rank_ + 1 && before.front() == rank_, "scan_async and exscan_async");
    elastic::barrier();
    while (called == 0) std::this_thread::yield();
    require(called == 1, "Work::then");
  }

  /// Each rank submits them in another order.
  void by_name() {
    elastic::Context& context = elastic::context();
    std::vector<float> sum(100, 1);
    std::vector<std::int64_t> sent(5, rank_);
    std::vector<std::int64_t> total(4, rank_ + 1);
    const std::vector<std::int32_t> block(at(rank_) + 1, rank_);
    const std::vector<double> whole(at(size_) * 2, 1);
    std::vector<double> part(2);
    const std::vector<std::int32_t> blocks(at(size_), rank_);
    elastic::Pending<elastic::Gathered<std::int32_t>> gathered;
    elastic::Pending<elastic::Gathered<std::int32_t>> exchanged;
    elastic::Pending<elastic::ScatteredPart> scattered;
    std::vector<elastic::Work> works(4);
    for (int i = 0; i < 7; ++i) {
      switch ((i + rank_) % 7) {
        case 0:
          works[0] = context.allreduce_async("n sum", sum);
          break;
        case 1:
          works[1] = context.broadcast_async("n sent", elastic::view(std::span(sent)), 0);
          break;
        case 2:
          // Only the root needs room for the result.
          works[2] =
              context.reduce_async("n total", elastic::view(std::span(total)),
                                   elastic::view(std::span(total).first(rank_ == 0 ? 4 : 0)), 0);
          break;
        case 3:
          works[3] = context.barrier_async("n barrier");
          break;
        case 4:
          gathered = context.allgather_async("n gathered", std::span(block));
          break;
        case 5:
          exchanged = context.alltoall_async("n exchanged", std::span(blocks));
          break;
        default:
          scattered = context.reduce_scatter_async("n part", elastic::view(std::span(whole)),
                                                   elastic::view(std::span(part)));
      }
    }
    elastic::wait_all(works);
    for (const elastic::Work& work : works) check(work.contributors());
    require(sum.back() == static_cast<float>(size_) && sent.back() == 0, "named sum and broadcast");
    require(total.back() == (rank_ == 0 ? size_ * (size_ + 1) / 2 : rank_ + 1), "named reduce");
    const auto all = gathered.wait();
    require(all.counts.back() == at(size_) && all.values.back() == size_ - 1, "named allgather");
    require(exchanged.wait().values.back() == size_ - 1, "named alltoall");
    require(scattered.wait().count == 2 && part.back() == size_, "named reduce_scatter");
  }

  /// Ranks that disagree about what a name is.
  void refusals_by_name() {
    elastic::Context& context = elastic::context();
    std::vector<float> data(4, 1);
    if (size_ > 1) {
      const bool odd = rank_ == size_ - 1;
      must_fail(
          ErrorCode::kMismatch,
          {"'disputed': rank 0 submitted allreduce of 4 f32, sum", "submitted broadcast of 4 f32"},
          [&] {
            const auto work =
                odd ? context.broadcast_async("disputed", elastic::view(std::span(data)), 0)
                    : context.allreduce_async("disputed", data);
            work.wait();
          });
      must_fail(ErrorCode::kMismatch, {"broadcast of 4 f32 from rank"}, [&] {
        context.broadcast_async("roots", elastic::view(std::span(data)), odd ? 1 : 0).wait();
      });
    }
    must_fail(ErrorCode::kMismatch, {"broadcast: root", "is no rank"}, [&] {
      context.broadcast_async("no root", elastic::view(std::span(data)), size_).wait();
    });
    std::vector<float> room(1);
    must_fail(ErrorCode::kInvalidArgument, {"and the output has room for 1"}, [&] {
      (void)context
          .allgather_async("no room", elastic::view(std::span(data)),
                           elastic::view(std::span(room)))
          .wait();
    });
    const auto nothing = elastic::Work();
    must_fail(ErrorCode::kInvalidArgument, {"no operation"}, [&] { nothing.then([](auto&) {}); });
  }

  template <typename T>
  static void append(std::vector<T>& to, const std::vector<T>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  std::string folder_;
  int rank_;
  int size_;
  ResultHash hash_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: collectives_check LOG_FOLDER");
  return elastic::testing::as_a_worker([&] { Checks(argv[1]).run(); });
}
