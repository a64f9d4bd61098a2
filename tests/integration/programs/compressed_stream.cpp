// A worker of a stream of compressed allreduces. It knows what each of the others holds back, since
// it runs a compressor for every one of them, and so what their sum has to be. Writes a hash of
// every sum to <log>/<slot>, for the test to compare between workers. With "device_" in front of
// the compression, the tensors lie on a CUDA device.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

#include "cuda/driver_calls.hpp"
#include "integration/programs/check_program.hpp"

namespace {

using elastic::Compression;
using elastic::CompressionKind;
using elastic::Contributors;
using elastic::GradientCompressor;
using elastic::NamedTensor;
using elastic::testing::fail;
using elastic::testing::Gpu;
using elastic::testing::GpuArray;

constexpr std::string_view kOnDevice = "device_";
constexpr std::array<const char*, 4> kNames{"a", "b", "c", "d"};

struct Arguments {
  Compression compression;
  bool on_device = false;
  int calls = 0;
  std::size_t most_elements = 0;
  std::uint64_t seed = 0;
  std::string log;
};

/// The collectives of a worker without peers.
GradientCompressor::Collectives alone() {
  const Contributors only{std::make_shared<const std::vector<elastic::WorkerId>>(1), 1};
  return {
      [only](std::span<const elastic::TensorView>, elastic::ReduceOp) { return only; },
      [only](std::span<const std::uint8_t> block) {
        return elastic::Gathered<std::uint8_t>{{block.begin(), block.end()}, {block.size()}, only};
      }};
}

/// A gradient from 0.5 to 1.5 that all workers can compute, so that each can check the sums.
std::vector<float> gradient(int slot, int call, std::size_t tensor, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>((slot * 1000 + call) * 10) +
                      static_cast<unsigned>(tensor));
  std::vector<float> values(count);
  for (float& value : values) value = 0.5F + static_cast<float>(random()) * 0x1p-32F;
  return values;
}

class Stream {
 public:
  Stream(Arguments arguments, int slot, const Contributors& all_workers)
      : arguments_(std::move(arguments)),
        slot_(slot),
        workers_(all_workers.workers().begin(), all_workers.workers().end()),
        log_(arguments_.log + "/" + std::to_string(slot)),
        shared_(arguments_.seed),
        compressor_(elastic::context(), arguments_.compression) {
    for (std::size_t& size : sizes_) {
      size = std::min<std::size_t>(arguments_.most_elements,
                                   shared_() % (std::size_t{1} << shared_() % 15));
    }
    for (std::size_t other = 0; other < workers_.size(); ++other) {
      models_.push_back(std::make_unique<GradientCompressor>(alone(), arguments_.compression));
    }
    if (arguments_.on_device) gpu_.emplace(0);
  }

  void run() {
    for (int call = 0; call < arguments_.calls; ++call) {
      const std::size_t first = shared_() % kNames.size();
      const std::size_t end = first + 1 + shared_() % (kNames.size() - first);
      step(call, first, end);
    }
    log_ << "end" << std::endl;
  }

 private:
  using Tensors = std::vector<std::vector<float>>;
  struct Sum {
    Tensors tensors;
    Contributors contributors;
  };

  void step(int call, std::size_t first, std::size_t end) {
    const auto [sums, contributors] = arguments_.on_device
                                          ? allreduce_on_device(call, first, end)
                                          : allreduce(compressor_, slot_, call, first, end);
    Tensors right;
    for (const auto& sum : sums) right.emplace_back(sum.size());
    for (const elastic::WorkerId& worker : contributors.workers()) {
      const auto found = std::ranges::find(workers_, worker);
      if (found == workers_.end()) fail("a contributor that is no worker");
      const auto other = static_cast<std::size_t>(found - workers_.begin());
      add(allreduce(*models_[other], static_cast<int>(other), call, first, end).tensors, right);
    }
    for (std::size_t at = 0; at < sums.size(); ++at) compare(sums[at], right[at], call);
    log_ << contributors.size() << ' ' << hash(sums) << std::endl;
  }

  Sum allreduce(GradientCompressor& compressor, int slot, int call, std::size_t first,
                std::size_t end) {
    Sum sum;
    std::vector<NamedTensor> named;
    for (std::size_t at = first; at < end; ++at) {
      auto& tensor = sum.tensors.emplace_back(gradient(slot, call, at, sizes_[at]));
      named.push_back({kNames[at], elastic::view(std::span(tensor)), at == 2});
    }
    compressor.send_whole(call % 17 == slot);
    sum.contributors = compressor.grouped_allreduce(named);
    return sum;
  }

  /// Sums on the device.
  Sum allreduce_on_device(int call, std::size_t first, std::size_t end) {
    std::vector<GpuArray<float>> arrays;
    std::vector<NamedTensor> named;
    for (std::size_t at = first; at < end; ++at) {
      arrays.emplace_back(*gpu_, gradient(slot_, call, at, sizes_[at]), at);
      named.push_back(
          {kNames[at], elastic::cuda_view(arrays.back().data(), arrays.back().count()), at == 2});
    }
    Sum sum;
    compressor_.send_whole(call % 17 == slot_);
    sum.contributors = compressor_.grouped_allreduce(named);
    for (const auto& array : arrays) sum.tensors.push_back(array.read());
    return sum;
  }

  static void add(const Tensors& tensors, Tensors& sums) {
    for (std::size_t at = 0; at < sums.size(); ++at) {
      for (std::size_t i = 0; i < sums[at].size(); ++i) sums[at][i] += tensors[at][i];
    }
  }

  /// Encoded contributions are added in rank order; an allreduce may add in another.
  void compare(const std::vector<float>& sum, const std::vector<float>& right, int call) const {
    const CompressionKind kind = arguments_.compression.kind;
    const bool allreduced = kind == CompressionKind::kNone || kind == CompressionKind::kF16 ||
                            kind == CompressionKind::kBF16;
    const float tolerance = allreduced ? 0.25F : 0;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      if (std::abs(sum[i] - right[i]) <= tolerance) continue;
      fail("call " + std::to_string(call) + ": element " + std::to_string(i) + " is " +
           std::to_string(sum[i]) + ", and the contributors' sum is " + std::to_string(right[i]));
    }
  }

  static std::uint64_t hash(const Tensors& tensors) {
    elastic::testing::ResultHash hash;
    for (const auto& tensor : tensors) hash.add(tensor);
    return hash.value();
  }

  Arguments arguments_;
  std::optional<Gpu> gpu_;
  int slot_;
  std::vector<elastic::WorkerId> workers_;  // by slot
  std::ofstream log_;
  std::mt19937_64 shared_;  // the same on all workers
  std::array<std::size_t, kNames.size()> sizes_{};
  GradientCompressor compressor_;
  std::vector<std::unique_ptr<GradientCompressor>> models_;  // of all workers, by slot
};

Arguments parse(char** argv) {
  std::string_view text = argv[1];
  const bool on_device = text.starts_with(kOnDevice);
  if (on_device) text.remove_prefix(kOnDevice.size());
  const auto compression = elastic::find_compression(text);
  if (!compression) fail("COMPRESSION must be " + std::string(elastic::kCompressionForms));
  return {*compression,
          on_device,
          std::atoi(argv[2]),
          static_cast<std::size_t>(std::atoll(argv[3])),
          static_cast<std::uint64_t>(std::atoll(argv[4])),
          argv[5]};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) fail("usage: compressed_stream COMPRESSION CALLS MOST_ELEMENTS SEED LOG_FOLDER");
  return elastic::testing::as_a_worker([&] {
    const int slot = elastic::rank();  // in the first view they are the same
    std::ofstream(std::string(argv[5]) + "/pid." + std::to_string(slot)) << ::getpid() << std::endl;
    const Contributors all_workers = elastic::barrier();
    Stream stream(parse(argv), slot, all_workers);
    stream.run();
  });
}
