// Measures the time to move data from one core to another, which is the lower limit of any
// allreduce between workers of one host. One thread copies a tensor to shared memory, and the other
// adds it to its own tensor. Or the kernel copies the tensor directly for the other thread, which
// then adds it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <sched.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/uio.h>

#include "collectives/kernels/copy.hpp"
#include "collectives/kernels/reduce.hpp"

namespace elastic::bench {
namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 10;
/// Bytes that one system call copies: few, so that they are in this core's cache when added.
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// The cores that this process may use, in ascending order.
std::vector<std::size_t> allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<std::size_t> cores;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cores;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

void stay_on(std::size_t core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  if (sched_setaffinity(0, sizeof only, &only) != 0) {
    throw std::runtime_error("cannot stay on one core");
  }
}

enum class Way : std::uint8_t { kCached, kPastCaches, kByTheKernel };

/// The state that the two threads share. They spin while they wait, since each has a core.
struct alignas(64) Shared {
  Way way = Way::kCached;
  std::vector<std::byte> tensor = std::vector<std::byte>(kMostBytes);  // the writer's
  std::vector<std::byte> memory = std::vector<std::byte>(kMostBytes);  // shared
  std::size_t bytes = 0;
  double reading_us = 0;                            // of the latest transfer; set before `taken`
  alignas(64) std::atomic<std::uint64_t> given{0};  // transfers; the writer counts
  alignas(64) std::atomic<std::uint64_t> taken{0};  // transfers; the reader counts
};

constexpr std::uint64_t kOver = ~std::uint64_t{0};

/// Copies as from another process: the kernel makes no difference if it is this one.
void copy_by_the_kernel(std::byte* into, std::byte* from, std::size_t bytes) {
  const iovec here{into, bytes};
  const iovec there{from, bytes};
  if (::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) != static_cast<ssize_t>(bytes)) {
    throw std::runtime_error("the kernel does not copy from another process's memory");
  }
}

void add_given(Shared& shared, std::vector<std::byte>& sum, std::vector<std::byte>& piece) {
  static const kernels::Function add = kernels::reduce(DType::kF32, ReduceOp::kSum);
  for (std::size_t at = 0; at < shared.bytes; at += kPieceBytes) {
    const std::size_t bytes = std::min(kPieceBytes, shared.bytes - at);
    const std::byte* from = shared.memory.data() + at;
    if (shared.way == Way::kByTheKernel) {
      copy_by_the_kernel(piece.data(), shared.tensor.data() + at, bytes);
      from = piece.data();
    }
    add(sum.data() + at, sum.data() + at, from, bytes / sizeof(float));
  }
}

void read_all(Shared& shared, std::size_t core) {
  stay_on(core);
  std::vector<std::byte> sum(kMostBytes);
  std::vector<std::byte> piece(kPieceBytes);
  for (std::uint64_t next = 1;; ++next) {
    std::uint64_t given = 0;
    while ((given = shared.given.load(std::memory_order_acquire)) < next) {
    }
    if (given == kOver) return;
    const Clock::time_point begin = Clock::now();
    add_given(shared, sum, piece);
    shared.reading_us = us_since(begin);
    shared.taken.store(next, std::memory_order_release);
  }
}

void give(Shared& shared) {
  if (shared.way == Way::kByTheKernel) return;
  kernels::copy(
      shared.memory.data(), shared.tensor.data(), shared.bytes,
      shared.way == Way::kCached ? kernels::Store::kTemporal : kernels::Store::kNonTemporal);
}

/// A repetition is short compared with the time after which a hypervisor moves virtual processors.
void hand_over(benchmark::State& state, Way way, std::vector<std::size_t> cores) {
  Shared shared;
  shared.way = way;
  shared.bytes = static_cast<std::size_t>(state.range(0));
  stay_on(cores[0]);
  std::jthread reader([&shared, core = cores[1]] { read_all(shared, core); });
  double writing_us = 0;
  double reading_us = 0;
  std::uint64_t number = 0;
  for (auto _ : state) {
    // New data in this core's cache, as after a trainer's step.
    std::fill(shared.tensor.begin(), shared.tensor.end(), static_cast<std::byte>(number));
    const Clock::time_point begin = Clock::now();
    give(shared);
    writing_us += us_since(begin);
    shared.given.store(++number, std::memory_order_release);
    while (shared.taken.load(std::memory_order_acquire) < number) {
    }
    reading_us += shared.reading_us;
  }
  shared.given.store(kOver, std::memory_order_release);
  state.counters["writing_us"] = writing_us / static_cast<double>(number);
  state.counters["reading_us"] = reading_us / static_cast<double>(number);
}

void register_all(const std::vector<std::size_t>& cores) {
  for (const auto& [name, way] :
       {std::pair{"cached", Way::kCached}, std::pair{"past_caches", Way::kPastCaches},
        std::pair{"by_the_kernel", Way::kByTheKernel}}) {
    benchmark::RegisterBenchmark(name, hand_over, way, cores)
        ->Arg(64 << 10)
        ->Arg(kMostBytes)
        ->UseRealTime();
  }
}

}  // namespace
}  // namespace elastic::bench

int main(int argc, char** argv) {
  const std::vector<std::size_t> cores = elastic::bench::allowed_cores();
  if (cores.size() < 2) {
    std::fprintf(stderr, "core_to_core_bench: needs two processors, and may use %zu\n",
                 cores.size());
    return 1;
  }
  elastic::bench::register_all(cores);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
