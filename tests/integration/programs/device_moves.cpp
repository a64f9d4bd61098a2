// A worker that broadcasts, allgathers, reduce_scatters and sends tensors on a CUDA device, and
// compares the results with those of the same calls on host memory, bit by bit. Writes a hash over
// those that all ranks have to <log>/<rank>, for the test to compare. "exact": whose bits do not
// depend on the order of ranks. Ends with 77 where there is no device.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/group.hpp>

#include "cuda/driver_calls.hpp"
#include "integration/programs/check_program.hpp"
#include "integration/programs/device_contribution.hpp"
#include "integration/programs/device_rank.hpp"
#include "integration/programs/grouped_moves.hpp"

namespace {

using elastic::CudaStream;
using elastic::Element;
using elastic::ReduceOp;
using elastic::TensorView;
using elastic::testing::contribution;
using elastic::testing::DeviceRank;
using elastic::testing::fail;
using elastic::testing::for_each_dtype;
using elastic::testing::Gpu;
using elastic::testing::GpuArray;
using elastic::testing::kOps;
using elastic::testing::must_fail;
using elastic::testing::PinnedArray;
using elastic::testing::require;
using elastic::testing::ResultHash;
using elastic::testing::same_bits;
using elastic::testing::write_result;

constexpr std::size_t kCounts[] = {0, 1, 3, 1003, 70001};
/// Room behind a result, which no call may touch.
constexpr std::size_t kBehind = 5;

template <typename T>
std::vector<T> with_rest(std::vector<T> result, const std::vector<T>& before) {
  result.insert(result.end(), before.begin() + static_cast<std::ptrdiff_t>(result.size()),
                before.end());
  return result;
}

/// Parameters on a device, as a part of the State.
class OnDevice {
 public:
  OnDevice(const Gpu& gpu, const GpuArray<float>& array) : gpu_(gpu), array_(array) {}
  std::vector<std::byte> save() const {
    std::vector<std::byte> bytes(array_.bytes());
    gpu_.copy(reinterpret_cast<std::uintptr_t>(bytes.data()), array_.address(), bytes.size());
    return bytes;
  }
  void load(std::span<const std::byte> bytes) {
    if (bytes.size() != array_.bytes()) throw std::length_error("parameters of another size");
    gpu_.copy(array_.address(), reinterpret_cast<std::uintptr_t>(bytes.data()), bytes.size());
  }

 private:
  const Gpu& gpu_;
  const GpuArray<float>& array_;
};

class Moves : DeviceRank {
 public:
  Moves(std::string folder, int device) : DeviceRank(std::move(folder), device) {}

  void run() {
    for_each_dtype([this]<typename T>() { of_type<T>(); });
    on_some_ranks_only();
    in_one_place();
    messages();
    of_a_group();
    order();
    stall();
    state();
    write_result(folder_, hash_);
  }

 private:
  static void are(int workers, const elastic::Contributors& contributors) {
    require(contributors.size() == static_cast<std::size_t>(workers), "other contributors");
  }

  /// Around a ring, from a device to a device, to the host on every second rank, and the other way.
  void messages() {
    if (size_ == 1) return;
    const int next = (rank_ + 1) % size_;
    const int previous = (rank_ + size_ - 1) % size_;
    for (const std::size_t count : kCounts) {
      const auto sent = contribution<float>(rank_, count);
      const auto right = contribution<float>(previous, count);
      const std::vector<float> before(count + kBehind, -1.0F);
      const GpuArray<float> in(gpu_, sent, count % 4);
      const GpuArray<float> out(gpu_, before);
      elastic::Context& context = elastic::context();
      const elastic::Work gone = context.send_async(view_of(in), next, 1, stream());
      const auto received = context.recv(view_of(out), previous, 1, stream());
      require(received.count == count, "a message of another size");
      are(2, gone.wait());
      same(out.read(), with_rest(right, before), "a message to a device");
      std::vector<float> own(before);
      const GpuArray<float> again(gpu_, before);
      const elastic::Work mixed =
          rank_ % 2 == 0 ? context.send_async(elastic::view(std::span<const float>(sent)), next, 2)
                         : context.send_async(view_of(in), next, 2, stream());
      if (rank_ % 2 == 0) (void)context.recv(elastic::view(std::span(own)), previous, 2);
      if (rank_ % 2 == 1) (void)context.recv(view_of(again), previous, 2, stream());
      are(2, mixed.wait());
      same(rank_ % 2 == 0 ? own : again.read(), with_rest(right, before), "a message");
    }
    too_long();
  }

  /// It is lost, and the output stays as it was; the next one arrives.
  void too_long() {
    elastic::Context& context = elastic::context();
    const std::vector<float> sent = contribution<float>(rank_, 10);
    const GpuArray<float> in(gpu_, sent);
    const GpuArray<float> out(gpu_, std::vector<float>(9, -1.0F));
    for (int i = 0; i < 2 && rank_ == 0; ++i) {
      TensorView data = view_of(in);
      data.count -= static_cast<std::size_t>(i);
      are(2, context.send(data, 1, 3, stream()));
    }
    if (rank_ != 1) return;
    must_fail(elastic::ErrorCode::kInvalidArgument, {"the message has 10 elements"},
              [&] { (void)context.recv(view_of(out), 0, 3, stream()); });
    require(out.read() == std::vector<float>(9, -1.0F), "a failed call wrote to the device");
    (void)context.recv(view_of(out), 0, 3, stream());
    std::vector<float> right = contribution<float>(0, 10);
    right.pop_back();
    require(out.read() == right, "a message after one that was too long");
  }

  /// Named allreduces of a group, some of whose tensors are on a device.
  void of_a_group() {
    elastic::Group& group = elastic::context().group(elastic::GroupRule::every(2));
    if (group.rank() < 0) return;
    const std::vector<float> mine = contribution<float>(rank_, 1003);
    std::vector<float> right = mine;
    group.allreduce(right);
    const GpuArray<float> data(gpu_, mine);
    std::vector<float> own = mine;
    const std::vector<TensorView> tensors{view_of(data), elastic::view(std::span(own))};
    are(group.size(),
        group.grouped_allreduce_async("both", tensors, ReduceOp::kSum, stream()).wait());
    same(data.read(), right, "a group's tensor on a device");
    same(own, right, "a group's tensor beside it");
    const GpuArray<float> alone(gpu_, mine);
    are(group.size(),
        group.allreduce_async("one", view_of(alone), ReduceOp::kSum, stream()).wait());
    same(alone.read(), right, "a group's only tensor");
    must_fail(elastic::ErrorCode::kInvalidArgument, {"needs a name"},
              [&] { (void)group.allreduce_async("", view_of(alone), ReduceOp::kSum, stream()); });
  }

  template <Element T>
  void of_type() {
    for (const std::size_t count : kCounts) {
      for (int root = 0; root < size_; ++root) broadcast<T>(count, root);
      allgather<T>(count);
      for (const ReduceOp op : kOps) {
        if (op == ReduceOp::kSum || count == 1003) reduce_scatter<T>(count, op);
      }
    }
  }

  template <Element T>
  void broadcast(std::size_t count, int root) {
    const GpuArray<T> data(gpu_, contribution<T>(rank_, count), count % 4);
    check(elastic::broadcast(view_of(data), root, root % 2 == 0 ? stream() : CudaStream{}));
    same(data.read(), contribution<T>(root, count), "broadcast");
    hash_.add(data.read());
  }

  template <Element T>
  void allgather(std::size_t count) {
    const std::vector<T> block = contribution<T>(rank_, count + static_cast<std::size_t>(rank_));
    const auto right = elastic::allgather(std::span<const T>(block));
    const std::vector<T> before = contribution<T>(100, right.values.size() + kBehind);
    const auto check_blocks = [&](const elastic::GatheredBlocks& blocks, const std::vector<T>& out,
                                  const char* what) {
      check(blocks.contributors);
      require(blocks.counts == right.counts && blocks.count == right.values.size(),
              std::string(what) + ": wrong counts");
      same(out, with_rest(right.values, before), what);
    };
    const GpuArray<T> in(gpu_, block, 3);
    {
      const GpuArray<T> out(gpu_, before, 1);
      const auto blocks = elastic::allgather(view_of(in), view_of(out), stream());
      check_blocks(blocks, out.read(), "allgather on the device");
    }
    {
      const GpuArray<T> out(gpu_, before);
      const auto blocks = elastic::allgather(elastic::view(std::span(block)), view_of(out));
      check_blocks(blocks, out.read(), "allgather from the host");
    }
    std::vector<T> out = before;
    check_blocks(elastic::allgather(view_of(in), elastic::view(std::span(out)), stream()), out,
                 "allgather to the host");
    out = before;
    check_blocks(elastic::allgather(elastic::view(std::span(block)), elastic::view(std::span(out))),
                 out, "allgather on the host");
    std::vector<T> taken;
    check(elastic::context().allgather(
        view_of(in),
        [&](std::span<const std::byte> bytes, const std::vector<std::size_t>& counts) {
          const auto* first = reinterpret_cast<const T*>(bytes.data());
          taken.assign(first, first + bytes.size() / sizeof(T));
          require(counts == right.counts, "allgather to a callback: wrong counts");
        },
        stream()));
    same(taken, right.values, "allgather to a callback");
    require(same_bits(in.read(), block), "an allgather changed its input");
    hash_.add(taken);
  }

  template <Element T>
  void reduce_scatter(std::size_t count, ReduceOp op) {
    const std::vector<T> data = contribution<T>(rank_, count);
    const auto right = elastic::reduce_scatter(std::span<const T>(data), op);
    const std::size_t room = (count + static_cast<std::size_t>(size_) - 1) /
                             static_cast<std::size_t>(size_);  // and not one more
    const std::vector<T> before = contribution<T>(100, room);
    const auto check_part = [&](const elastic::ScatteredPart& part, const std::vector<T>& out,
                                const char* what) {
      check(part.contributors);
      require(part.offset == right.offset && part.count == right.values.size(),
              std::string(what) + ": another part");
      same(out, with_rest(right.values, before), what);
    };
    const GpuArray<T> in(gpu_, data, 1);
    {
      const GpuArray<T> out(gpu_, before, 2);
      const auto part = elastic::reduce_scatter(view_of(in), view_of(out), op, stream());
      check_part(part, out.read(), "reduce_scatter on the device");
    }
    {
      const GpuArray<T> out(gpu_, before);
      const auto part = elastic::reduce_scatter(elastic::view(std::span(data)), view_of(out), op);
      check_part(part, out.read(), "reduce_scatter from the host");
    }
    std::vector<T> out = before;
    check_part(elastic::reduce_scatter(view_of(in), elastic::view(std::span(out)), op, stream()),
               out, "reduce_scatter to the host");
    out = before;
    check_part(
        elastic::reduce_scatter(elastic::view(std::span(data)), elastic::view(std::span(out)), op),
        out, "reduce_scatter on the host");
    std::vector<T> taken;
    check(elastic::context().reduce_scatter(
        view_of(in), op,
        [&](std::span<const std::byte> bytes, std::size_t offset) {
          const auto* first = reinterpret_cast<const T*>(bytes.data());
          taken.assign(first, first + bytes.size() / sizeof(T));
          require(offset == right.offset, "reduce_scatter to a callback: another part");
        },
        stream()));
    same(taken, right.values, "reduce_scatter to a callback");
    require(same_bits(in.read(), data), "a reduce_scatter changed its input");
  }

  /// Where tensors lie is each rank's own business.
  void on_some_ranks_only() {
    for (int root = 0; root < size_; ++root) {
      std::vector<float> own = contribution<float>(rank_, 5000);
      const GpuArray<float> array(gpu_, own);
      if ((rank_ + root) % 2 == 0) {
        check(elastic::broadcast(view_of(array), root, stream()));
        own = array.read();
      } else {
        check(elastic::broadcast(std::span<float>(own), root));
      }
      same(own, contribution<float>(root, 5000), "broadcast on some ranks' devices");
    }
  }

  /// Inputs that are a part of the outputs.
  void in_one_place() {
    const auto size = static_cast<std::size_t>(size_);
    const auto mine = static_cast<std::size_t>(rank_) * 100;
    std::vector<float> right = contribution<float>(rank_, 100 * size);
    const GpuArray<float> all(gpu_, right);
    const GpuArray<float> parts(gpu_, right);
    const auto gathered =
        elastic::allgather(std::span<const float>(right).subspan(mine, 100)).values;
    elastic::allgather(elastic::cuda_view(all.data() + mine, 100, index_), view_of(all), stream());
    same(all.read(), gathered, "allgather in place");
    const auto scattered = elastic::reduce_scatter(std::span<const float>(right)).values;
    elastic::reduce_scatter(view_of(parts), view_of(parts), ReduceOp::kSum, stream());
    same(parts.read(), with_rest(scattered, right), "reduce_scatter in place");
  }

  /// Work that is queued on the stream before a call runs before it: work that makes the input, and
  /// work that still reads the output.
  void order() {
    constexpr std::size_t kElements = 20000;
    const PinnedArray<std::int64_t> made(gpu_, contribution<std::int64_t>(rank_, kElements));
    const GpuArray<std::int64_t> in(gpu_, std::vector<std::int64_t>(kElements, -1));
    const GpuArray<std::int64_t> out(gpu_, std::vector<std::int64_t>(kElements * 8, rank_));
    const GpuArray<std::int64_t> kept(gpu_, std::vector<std::int64_t>(kElements * 8, -2));
    const auto after_the_stream = [&](const char* what, const std::function<void()>& call) {
      std::atomic<bool> gate{false};
      stream_.hold(gate);
      stream_.write(in.address(), made);
      copy_on_stream(kept.address(), out.address(), out.bytes());
      // When all ranks have completed four operations, this rank has entered the call long before.
      std::thread opens([&] {
        std::int32_t one = 1;
        for (int i = 0; i < 4; ++i) elastic::allreduce_async("opens", std::span(&one, 1)).wait();
        gate = true;
        gate.notify_all();
      });
      const std::vector<std::int64_t> before = out.read();
      call();
      opens.join();
      require(kept.read() == before, std::string(what) + " came before what reads its output");
    };
    const auto expected = contribution<std::int64_t>(size_ - 1, kElements);
    after_the_stream("a broadcast", [&] {
      const GpuArray<std::int64_t>& data = rank_ == size_ - 1 ? in : out;
      elastic::broadcast(elastic::cuda_view(data.data(), kElements, index_), size_ - 1, stream());
      std::vector<std::int64_t> got = data.read();
      got.resize(kElements);
      require(got == expected, "a broadcast came before its stream was there");
    });
    const auto block = contribution<std::int64_t>(rank_, kElements);
    const auto all = elastic::allgather(std::span<const std::int64_t>(block)).values;
    after_the_stream("an allgather", [&] {
      elastic::allgather(view_of(in), view_of(out), stream());
      std::vector<std::int64_t> got = out.read();
      got.resize(all.size());
      require(got == all, "an allgather came before its stream was there");
    });
    const auto part = elastic::reduce_scatter(std::span<const std::int64_t>(block)).values;
    after_the_stream("a reduce_scatter", [&] {
      elastic::reduce_scatter(view_of(in), view_of(out), ReduceOp::kSum, stream());
      std::vector<std::int64_t> got = out.read();
      got.resize(part.size());
      require(got == part, "a reduce_scatter came before its stream was there");
    });
  }
  void copy_on_stream(std::uint64_t to, std::uint64_t from, std::size_t bytes) const {
    using Copy = int(std::uint64_t, std::uint64_t, std::size_t, void*);
    Gpu::must("cuMemcpyAsync", gpu_.call<Copy>("cuMemcpyAsync")(to, from, bytes, stream_.handle()));
  }

  /// A stream that goes on only when there was a warning that names the call that waits for it.
  void stall() {
    if (elastic::context().options().stall_warning > std::chrono::seconds(1)) return;
    const GpuArray<float> array(gpu_, std::vector<float>(10, 1.0F));
    int ends[2];
    require(::pipe(ends) == 0, "no pipe");
    const int usual = ::dup(STDERR_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    std::atomic<bool> gate{false};
    stream_.hold(gate);
    std::string said;
    std::thread reads([&] {
      while (said.find("broadcast waits for CUDA device") == std::string::npos) {
        char character = 0;
        if (::read(ends[0], &character, 1) != 1) break;
        said += character;
      }
      gate = true;
      gate.notify_all();
    });
    check(elastic::broadcast(view_of(array), 0, stream()));
    reads.join();
    ::dup2(usual, STDERR_FILENO);
    for (const int file : {usual, ends[0], ends[1]}) ::close(file);
  }

  /// docs/gpu.md says how parameters on a device get into the State.
  void state() {
    const GpuArray<float> array(gpu_, contribution<float>(rank_, 3000));
    OnDevice parameters(gpu_, array);
    elastic::State state;
    state.add("parameters", parameters);
    elastic::run(state, [&] {
      same(array.read(), contribution<float>(0, 3000), "the state");
      state.commit();
    });
  }

  ResultHash hash_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) fail("usage: device_moves LOG_FOLDER [exact]");
  elastic::testing::exact = argc == 3;
  return elastic::testing::on_a_device([&](int device) {
    elastic::testing::GroupedMoves(argv[1], device).run();
    Moves(argv[1], device).run();
  });
}
