// Compares the loops of collectives/kernels with memcpy, in bytes of the result per second.
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "benchmarks/report/element_names.hpp"
#include "collectives/kernels/copy.hpp"
#include "collectives/kernels/reduce.hpp"

namespace elastic::bench {
namespace {

using kernels::Store;

struct Size {
  const char* name;
  std::size_t bytes;
};
/// One size fits the cache of a core, the other fits no cache.
constexpr Size kSizes[] = {{"256K", std::size_t{256} << 10}, {"64M", std::size_t{64} << 20}};

/// Three ranges of the greatest size, filled with zeros: they stay zeros under every reduction, and
/// the value does not affect the speed of a loop.
struct Ranges {
  std::vector<std::byte> into, left, right;
};
Ranges& ranges() {
  static constexpr std::size_t kBytes = kSizes[1].bytes;
  static Ranges all{std::vector<std::byte>(kBytes), std::vector<std::byte>(kBytes),
                    std::vector<std::byte>(kBytes)};
  return all;
}

void add(const std::string& name, std::size_t bytes, const std::function<void(Ranges&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), [bytes, run](benchmark::State& state) {
    Ranges& all = ranges();  // the first benchmark allocates them, before its time begins
    for (auto iteration : state) {
      (void)iteration;
      run(all);
      benchmark::DoNotOptimize(all.into.data());
      benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  });
}

void add_copies(const Size& size) {
  const std::size_t bytes = size.bytes;
  const auto name = [&](const char* what) { return std::string(what) + "/" + size.name; };
  add(name("memcpy"), bytes,
      [bytes](Ranges& at) { std::memcpy(at.into.data(), at.left.data(), bytes); });
  add(name("copy/streaming"), bytes, [bytes](Ranges& at) {
    kernels::copy(at.into.data(), at.left.data(), bytes, Store::kNonTemporal);
  });
}

void add_reductions(const Size& size, DType dtype, ReduceOp op) {
  const std::size_t elements = size.bytes / size_of(dtype);
  const auto name = [&](const char* how) {
    return std::string(name_of(op)) + "/" + name_of(dtype) + "/" + how + "/" + size.name;
  };
  const auto cached = kernels::reduce(dtype, op);
  add(name("in_place"), size.bytes,
      [=](Ranges& at) { cached(at.left.data(), at.left.data(), at.right.data(), elements); });
  add(name("out_of_place"), size.bytes,
      [=](Ranges& at) { cached(at.into.data(), at.left.data(), at.right.data(), elements); });
  const auto streaming = kernels::reduce(dtype, op, Store::kNonTemporal);
  add(name("streaming"), size.bytes,
      [=](Ranges& at) { streaming(at.into.data(), at.left.data(), at.right.data(), elements); });
}

void add_all() {
  for (const Size& size : kSizes) {
    add_copies(size);
    for (const DType dtype : all_dtypes()) {
      for (const ReduceOp op : all_ops()) {
        if (op != ReduceOp::kAverage) add_reductions(size, dtype, op);
      }
      add(std::string("divide/") + name_of(dtype) + "/in_place/" + size.name, size.bytes,
          [=](Ranges& at) {
            kernels::divide(dtype, at.left.data(), size.bytes / size_of(dtype), 3);
          });
    }
  }
}

}  // namespace
}  // namespace elastic::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  elastic::bench::add_all();
  benchmark::RunSpecifiedBenchmarks();
}
