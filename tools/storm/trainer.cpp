// The trainer of `./run storm`: uses the installed library as any program would, and checks every
// result by itself. The contribution of a worker follows from its id, the step and the tensor, so
// each sum tells exactly which workers are in it. The first wrong value ends the process with 9.
//
// storm_trainer FOLDER: writes a line per step to FOLDER/<pid>, until FOLDER/finish exists.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <elastic/elastic.hpp>

#include "calls.hpp"
#include "oracle.hpp"

namespace {

using storm::contribution;
using storm::expect_sum;
using storm::mix;
using storm::record;
using storm::value;
using storm::Values;

constexpr std::size_t kSizes[] = {1, 100, 3000, 20000, 300000};
constexpr std::size_t kWeights = 20000;

/// Named allreduces from a thread of their own, which know nothing of steps. They end when all
/// workers want to, or with this worker's membership.
class Metrics {
 public:
  Metrics() : thread_([this] { run(); }) {}
  ~Metrics() {
    stop_ = true;
    thread_.join();
  }

 private:
  void run() try {
    for (bool all_stop = false; !all_stop;) {
      const std::uint64_t self = elastic::context().id();
      Values values{value(self, 0, 0), stop_ ? 1 : 0};
      const auto contributors = elastic::allreduce_async("metric", std::span(values)).wait();
      expect_sum({values[0]}, 0, contributors, "metric");
      all_stop = values[1] == static_cast<std::int64_t>(contributors.size());
      // Metrics are rarer than steps, and leave the processors to them.
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  } catch (const elastic::Error&) {
    // This worker has left the job; the training thread says why.
  }

  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// One of each kind of allreduce; sizes follow from the step, so that they are the same on all.
elastic::Contributors reduce(std::uint64_t step, Values& weights) {
  const std::uint64_t draw = mix(step);
  const std::size_t count = kSizes[draw % std::size(kSizes)];
  Values tensor = contribution(step, count);
  elastic::Contributors contributors;
  if (draw & 64U) {
    Values sum(count);
    contributors =
        elastic::allreduce(std::span<const std::int64_t>(tensor), std::span<std::int64_t>(sum));
    tensor = std::move(sum);
  } else {
    contributors = elastic::allreduce(std::span(tensor));
  }
  expect_sum(tensor, step, contributors, "step " + std::to_string(step));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] ^= tensor[i % count];

  Values one = contribution(step + 1, kSizes[mix(draw) % 4]);
  Values two = contribution(step + 2, kSizes[mix(draw + 1) % 4]);
  // In another order on every second worker.
  elastic::Work first;
  elastic::Work second;
  const bool swapped = elastic::context().id() % 2 == 1;
  if (swapped) second = elastic::allreduce_async("two", std::span(two));
  first = elastic::allreduce_async("one", std::span(one));
  if (!swapped) second = elastic::allreduce_async("two", std::span(two));
  expect_sum(one, step + 1, first.wait(), "one");
  expect_sum(two, step + 2, second.wait(), "two");
  if (draw % 11 == 0) elastic::barrier();
  return contributors;
}

std::uint64_t hash(const Values& values) {
  std::uint64_t result = 0;
  for (const auto one : values) result = mix(result ^ static_cast<std::uint64_t>(one));
  return result;
}

void train(const std::filesystem::path& folder) {
  std::int64_t step = 0;
  std::int64_t finish =
      0;  // in the state: a worker that joins after the last step has nothing to do
  Values weights(kWeights);
  elastic::State state;
  state.add("step", step);
  state.add("finish", finish);
  state.add("weights", weights);
  elastic::run(state, [&] {
    record << "enters at " << step << std::endl;
    const Metrics metrics;
    while (finish == 0) {
      const std::uint64_t key = static_cast<std::uint64_t>(step) * 3;
      const auto contributors = reduce(key, weights);
      const std::uint64_t other = storm::other_call(key, contributors);
      Values asked{std::filesystem::exists(folder / "finish") ? 1 : 0};
      elastic::allreduce(std::span(asked), elastic::ReduceOp::kMax);
      finish = asked[0];
      ++step;
      std::uint64_t who = mix(other ^ contributors.generation());
      for (const auto worker : contributors.workers()) who = mix(who ^ worker);
      record << "step " << step << ' ' << contributors.generation() << ' ' << who << ' '
             << hash(weights) << std::endl;
      state.commit();
    }
    record << "finished" << std::endl;
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: storm_trainer FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  record.open(folder / std::to_string(::getpid()));
  try {
    elastic::init();
    train(folder);
    elastic::shutdown();
    return 0;
  } catch (const elastic::Error& error) {
    record << "error: " << error.what() << std::endl;
    return 1;
  }
}
