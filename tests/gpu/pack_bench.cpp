// Bandwidth of packing and unpacking, as a share of what the device's own copy reaches with as many
// bytes in the same run. Bytes count as often as they are read and written.
//
// usage: pack_bench [--rounds N]
//
// Exits with 77 where there is no device.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/steps/network_model.hpp"
#include "collectives/kernels/device/packer.hpp"
#include "tests/gpu/device_memory.hpp"

namespace elastic::gpu {
namespace {

using kernels::device::Direction;
using kernels::device::Packer;
using kernels::device::PackPlan;
using kernels::device::PackRequest;
using kernels::device::Scale;
using kernels::device::TensorRange;

constexpr int kNoDevice = 77;
/// Least acceptable bandwidth, as a fraction of that of a copy on the device.
constexpr double kWanted = 0.85;

/// A point in a stream's time.
class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }

  void record(const Stream& stream) const {
    check(cudaEventRecord(event_, stream.get()), "cudaEventRecord");
  }
  double us_since(const Event& start) const {
    float ms = 0;
    check(cudaEventSynchronize(event_), "cudaEventSynchronize");
    check(cudaEventElapsedTime(&ms, start.event_, event_), "cudaEventElapsedTime");
    return static_cast<double>(ms) * 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// One line of the table.
struct Measured {
  std::string name;
  double bytes = 0;  ///< read and written by one
  std::function<void()> start;
  std::vector<double> us = {};  ///< of one, in each round

  double median_us() const {
    std::vector<double> sorted = us;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
  double gigabytes_per_second() const { return bytes / median_us() / 1e3; }
};

double time_us(const Measured& one, const Stream& stream, int times) {
  const Event start;
  const Event end;
  one.start();  // warm
  start.record(stream);
  for (int i = 0; i < times; ++i) one.start();
  end.record(stream);
  return end.us_since(start) / times;
}

/// Everything once in each round, so that all have the same clocks.
void measure(std::vector<Measured>& all, const Stream& stream, int rounds) {
  constexpr double kWantedUs = 5e3;  // of each in a round
  std::vector<int> times;
  for (const Measured& one : all) {
    times.push_back(1 + static_cast<int>(kWantedUs / time_us(one, stream, 3)));
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].us.push_back(time_us(all[i], stream, times[i]));
    }
  }
}

bool print(const std::string& title, const std::vector<Measured>& all) {
  std::printf("\n%s\n%-28s %10s %10s %8s\n", title.c_str(), "", "us", "GB/s", "of copy");
  const double copy = all.front().gigabytes_per_second();
  bool reached = true;
  for (const Measured& one : all) {
    const double share = one.gigabytes_per_second() / copy;
    std::printf("%-28s %10.1f %10.0f %7.1f%%\n", one.name.c_str(), one.median_us(),
                one.gigabytes_per_second(), share * 100);
    if (share < kWanted) reached = false;
  }
  return reached;
}

/// Tensors of float32 next to each other, each at a multiple of 256 bytes, as allocators give them.
class Tensors {
 public:
  explicit Tensors(const std::vector<std::size_t>& counts) : memory_(bytes_for(counts)) {
    std::size_t at = 0;
    for (const std::size_t count : counts) {
      ranges_.push_back({memory_.data() + at, count});
      at += aligned(count);
      count_ += count;
    }
    check(cudaMemset(memory_.data(), 0, memory_.bytes()), "cudaMemset");
  }

  const std::vector<TensorRange>& ranges() const { return ranges_; }
  std::byte* data() const { return memory_.data(); }
  std::size_t count() const { return count_; }

 private:
  static std::size_t aligned(std::size_t count) {
    return (count * sizeof(float) + 255) / 256 * 256;
  }
  static std::size_t bytes_for(const std::vector<std::size_t>& counts) {
    std::size_t bytes = 0;
    for (const std::size_t count : counts) bytes += aligned(count);
    return bytes;
  }

  DeviceMemory memory_;
  std::vector<TensorRange> ranges_;
  std::size_t count_ = 0;
};

class Bench {
 public:
  Bench(const std::vector<std::size_t>& counts, std::size_t misaligned)
      : tensors_(counts),
        bucket_memory_(tensors_.count() * sizeof(float) + misaligned),
        bucket_(bucket_memory_.data() + misaligned) {
    check(cudaMemset(bucket_memory_.data(), 0, bucket_memory_.bytes()), "cudaMemset");
  }

  void add_copy() {
    const std::size_t bytes = tensors_.count() * sizeof(float);
    all_.push_back({"cudaMemcpyDeviceToDevice", 2.0 * static_cast<double>(bytes), [this, bytes] {
                      check(cudaMemcpyAsync(bucket_memory_.data(), tensors_.data(), bytes,
                                            cudaMemcpyDeviceToDevice, stream_.get()),
                            "cudaMemcpyAsync");
                    }});
  }
  void add(const std::string& name, Direction direction, DType bucket, Scale scale) {
    const PackRequest request{direction, DType::kF32, bucket, tensors_.ranges(), bucket_, scale};
    const std::string wrong = kernels::device::invalid_request(request);
    if (!wrong.empty()) throw std::invalid_argument(wrong);
    const auto bytes = static_cast<double>(tensors_.count() * (sizeof(float) + size_of(bucket)));
    all_.push_back({name, bytes, [this, plan = kernels::device::pack_plan(request)] {
                      check(packer_.launch(plan, stream_.get()), "launch");
                    }});
  }
  void add_all() {
    add_copy();
    add("pack", Direction::kPack, DType::kF32, {});
    add("unpack", Direction::kUnpack, DType::kF32, {});
    add("pack, by 1/3", Direction::kPack, DType::kF32, {1.0 / 3, 1});
    add("unpack, average of 3", Direction::kUnpack, DType::kF32, {1, 3});
    add("pack to f16, by 1024", Direction::kPack, DType::kF16, {1024, 1});
    add("unpack f16, average of 3", Direction::kUnpack, DType::kF16, {1.0 / 1024, 3});
    add("pack to bf16", Direction::kPack, DType::kBF16, {});
    add("unpack bf16", Direction::kUnpack, DType::kBF16, {});
  }
  bool run(const std::string& name, int rounds) {
    measure(all_, stream_, rounds);
    char title[200];
    std::snprintf(title, sizeof title, "%s: %zu tensors of f32, %.1f MiB", name.c_str(),
                  tensors_.ranges().size(),
                  static_cast<double>(tensors_.count() * sizeof(float)) / (1 << 20));
    return print(title, all_);
  }

 private:
  Tensors tensors_;
  DeviceMemory bucket_memory_;
  std::byte* bucket_;
  Stream stream_;
  Packer packer_;
  std::vector<Measured> all_;
};

bool bench(const std::string& name, const std::vector<std::size_t>& counts, std::size_t misaligned,
           int rounds) {
  Bench one(counts, misaligned);
  one.add_all();
  return one.run(name, rounds);
}

std::vector<std::size_t> counts_of(const std::string& network) {
  std::vector<std::size_t> counts;
  for (const auto& parameter : bench::make_model(network).parameters) {
    counts.push_back(parameter.count);
  }
  return counts;
}

int run(int rounds) {
  if (const std::string why = no_device(); !why.empty()) {
    std::printf("pack_bench: skipped, %s\n", why.c_str());
    return kNoDevice;
  }
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  std::printf("%s, %d multiprocessors, %d MiB of cache; medians of %d rounds\n", device.name,
              device.multiProcessorCount, device.l2CacheSize >> 20, rounds);
  const std::vector<std::size_t> resnet = counts_of("resnet50");
  const std::vector<std::size_t> one = {std::size_t{256} << 20};
  bool reached = bench("ResNet-50", resnet, 0, rounds);
  reached = bench("BERT-large", counts_of("bert-large"), 0, rounds) && reached;
  reached = bench("one tensor", one, 0, rounds) && reached;
  std::printf("\n%s: %.0f %% of the copy's bandwidth%s\n", reached ? "reached" : "NOT REACHED",
              kWanted * 100, reached ? " throughout" : " everywhere");
  bench("one tensor, bucket 4 bytes off", one, 4, rounds);
  bench("4000 tensors", std::vector<std::size_t>(4000, 5001), 0, rounds);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace elastic::gpu

int main(int count, char** arguments) {
  int rounds = 7;
  if (count == 3 && std::string_view(arguments[1]) == "--rounds") rounds = std::atoi(arguments[2]);
  if ((count != 1 && count != 3) || rounds < 1) {
    std::fprintf(stderr, "usage: pack_bench [--rounds N], N at least 1\n");
    return 2;
  }
  try {
    return elastic::gpu::run(rounds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pack_bench: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
