// Measures the cost of a step under each batch policy. A sample's gradient takes one pass over
// memory, less than any layer needs, so the cost shown for `reproducible` is an upper bound.
//
//   elasticrun -np 2 batch_policy_bench [MIB=10] [SAMPLES=8] [TURNS=30]
//
// A step has 8 virtual batches of SAMPLES; under per_worker, as many samples in two batches. The
// policies take turns. Rank 0 prints the median of each and its ratio to that of fixed_total.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

#include "benchmarks/report/statistics.hpp"

namespace {

constexpr std::size_t kSamples = std::size_t{1} << 40;  // so many that the epoch does not end
constexpr std::size_t kVirtualWorkers = 8;
constexpr std::array<const char*, 3> kPolicies{"per_worker", "fixed_total", "reproducible"};

std::size_t argument(int argc, char** argv, int at, std::size_t otherwise) {
  return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
}

class Comparison {
 public:
  Comparison(std::size_t mebibytes, std::size_t samples) : gradient_(mebibytes << 18) {
    const std::size_t batch = kVirtualWorkers * samples;
    add({elastic::BatchPolicy::kPerWorker, batch / 2, 1});
    add({elastic::BatchPolicy::kFixedTotal, batch, kVirtualWorkers});
    add({elastic::BatchPolicy::kReproducible, batch, kVirtualWorkers});
    state_.add("sampler", sampler_);
  }

  void run(std::size_t turns) {
    elastic::run(state_, [&] {
      for (std::size_t turn = 0; turn < turns; ++turn) {
        for (std::size_t policy = 0; policy < kPolicies.size(); ++policy) {
          elastic::barrier();
          times_[policy].push_back(step_ms(*batches_[policy]));
        }
      }
    });
  }

  void print() {
    const double reference = elastic::bench::summarize(times_[1]).median;
    for (std::size_t policy = 0; policy < kPolicies.size(); ++policy) {
      const double time = elastic::bench::summarize(times_[policy]).median;
      std::printf("%-12s %8.2f ms  %5.2f\n", kPolicies[policy], time, time / reference);
    }
  }

 private:
  void add(const elastic::GlobalBatch::Options& options) {
    batches_.push_back(
        std::make_unique<elastic::GlobalBatch>(elastic::context(), sampler_, options));
  }

  double step_ms(elastic::GlobalBatch& batches) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<elastic::TensorView> tensors{elastic::view(std::span<float>(gradient_))};
    batches.sum(tensors, [&](const elastic::VirtualBatch& part) {
      for (const std::size_t index : part.samples) {
        const auto value = static_cast<float>(index % 1000);
        for (float& element : gradient_) element += value;
      }
    });
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  }

  std::vector<float> gradient_;
  elastic::Sampler sampler_{kSamples, 1};
  std::vector<std::unique_ptr<elastic::GlobalBatch>> batches_;
  std::array<std::vector<double>, kPolicies.size()> times_;
  elastic::State state_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    elastic::init();
    Comparison comparison(argument(argc, argv, 1, 10), argument(argc, argv, 2, 8));
    comparison.run(argument(argc, argv, 3, 30));
    if (elastic::rank() == 0) comparison.print();
    elastic::shutdown();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "batch_policy_bench: %s\n", error.what());
    return 1;
  }
}
