// Makes steps of named tensors while the size of buckets is found, with every element of every sum
// checked. The worker that begins with rank `dying` (-1: none) dies in the middle of a step.
//   autotune_check <log folder> <dying>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>

#include "integration/programs/check_program.hpp"
#include "tests/slowness.hpp"

namespace {

using elastic::testing::require;
using Numbers = std::vector<std::int64_t>;

constexpr int kSteps = 220;
constexpr int kLastStep = 110;  // of the one that dies
constexpr std::size_t kTensors = 12;
constexpr std::size_t kCount = elastic::kSlowness > 1 ? 3'011 : 20'011;

/// A digit for each worker, so that a sum says whose parts are in it.
std::int64_t digit(int rank) {
  std::int64_t digit = 1;
  for (int i = 0; i < rank; ++i) digit *= 10;
  return digit;
}

void run(int dying) {
  elastic::Context& job = elastic::context();
  const int rank = job.rank();
  std::map<elastic::WorkerId, std::int64_t> digits;
  for (const elastic::WorkerId& worker : job.members().workers()) {
    digits.emplace(worker, digit(static_cast<int>(digits.size())));
  }
  std::vector<Numbers> sums(kTensors);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<elastic::Work> works;
    for (std::size_t i = 0; i < kTensors; ++i) {
      sums[i].assign(kCount, digit(rank));
      works.push_back(job.allreduce_async("gradient" + std::to_string(i), std::span(sums[i])));
      if (rank == dying && step == kLastStep && i == kTensors / 2) ::raise(SIGKILL);
    }
    for (std::size_t i = 0; i < kTensors; ++i) {
      const elastic::Contributors contributors = works[i].wait();
      std::int64_t whole = 0;
      for (const elastic::WorkerId& worker : contributors.workers()) whole += digits.at(worker);
      require(sums[i] == Numbers(kCount, whole), "a sum over its contributors");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) elastic::testing::fail("usage: autotune_check LOG_FOLDER DYING");
  return elastic::testing::as_a_worker([&] {
    const std::string rank = std::to_string(elastic::rank());
    run(std::atoi(argv[2]));
    std::ofstream(std::string(argv[1]) + "/" + rank) << "end" << std::endl;
  });
}
