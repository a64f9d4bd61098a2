// A worker that proves who was counted in each allreduce: it contributes 10^slot, so the decimal
// digits of a sum say which workers are in it and how often. Checks every sum by itself and writes
// it to <log>/<slot>, for the test to compare between workers.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include <elastic/elastic.hpp>

namespace {

struct Arguments {
  std::string mode;  // "blocking", "named" or "mixed"
  int calls = 0;
  std::size_t most_elements = 0;
  std::uint64_t seed = 0;
  std::string log;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "digit_stream: %s\n", what.c_str());
  std::_Exit(3);
}

std::int64_t digit(int slot) {
  std::int64_t value = 1;
  for (int i = 0; i < slot; ++i) value *= 10;
  return value;
}

/// Every element is the same sum, each worker is in it at most once, this one is, and as many as
/// the library says.
std::int64_t checked_sum(const std::vector<std::int64_t>& data, std::size_t contributors,
                         int slot) {
  const std::int64_t sum = data.front();
  if (std::any_of(data.begin(), data.end(), [&](std::int64_t value) { return value != sum; })) {
    fail("mixed sums in one call: " + std::to_string(sum));
  }
  std::size_t counted = 0;
  for (std::int64_t rest = sum; rest > 0; rest /= 10) {
    if (rest % 10 > 1) fail("counted twice: " + std::to_string(sum));
    counted += static_cast<std::size_t>(rest % 10);
  }
  if (sum / digit(slot) % 10 != 1) fail("own contribution missing: " + std::to_string(sum));
  if (counted != contributors) {
    fail("sum " + std::to_string(sum) + " but " + std::to_string(contributors) + " contributors");
  }
  return sum;
}

class Stream {
 public:
  Stream(Arguments arguments, int slot)
      : arguments_(std::move(arguments)),
        slot_(slot),
        log_(arguments_.log + "/" + std::to_string(slot)),
        shared_(arguments_.seed),
        own_(arguments_.seed * 31 + static_cast<std::uint64_t>(slot)) {}

  void run() {
    for (int call = 0; call < arguments_.calls; ++call) {
      const bool named =
          arguments_.mode == "named" || (arguments_.mode == "mixed" && call % 2 == 1);
      named ? named_step() : blocking_call();
    }
    log_ << "end" << std::endl;
  }

 private:
  std::size_t next_count() {
    // Every size class as often as any other: the plans differ by size.
    const auto bits = shared_() % 18;
    return std::min<std::size_t>(arguments_.most_elements,
                                 1 + shared_() % (std::size_t{1} << bits));
  }

  void blocking_call() {
    std::vector<std::int64_t> data(next_count(), digit(slot_));
    const elastic::Contributors who = elastic::allreduce(std::span<std::int64_t>(data));
    log_ << checked_sum(data, who.size(), slot_) << std::endl;
  }

  void named_step() {
    std::vector<std::vector<std::int64_t>> tensors(6);
    for (auto& tensor : tensors) tensor.assign(next_count() / 4 + 1, digit(slot_));
    std::vector<std::size_t> order(tensors.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (elastic::rank() != 0) std::shuffle(order.begin(), order.end(), own_);
    std::vector<elastic::Work> works(tensors.size());
    for (const std::size_t i : order) {
      works[i] =
          elastic::allreduce_async("t" + std::to_string(i), std::span<std::int64_t>(tensors[i]));
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
      const elastic::Contributors who = works[i].wait();
      log_ << checked_sum(tensors[i], who.size(), slot_) << std::endl;
    }
  }

  Arguments arguments_;
  int slot_;
  std::ofstream log_;
  std::mt19937_64 shared_;  // the same on all workers
  std::mt19937_64 own_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) fail("usage: digit_stream MODE CALLS MOST_ELEMENTS SEED LOG_FOLDER");
  const char* slot_text = std::getenv("RANK");
  if (slot_text == nullptr) slot_text = std::getenv("OMPI_COMM_WORLD_RANK");
  if (slot_text == nullptr) fail("RANK is not set: start me with elasticrun or mpirun");
  const int slot = std::atoi(slot_text);
  try {
    elastic::init();
    std::ofstream(std::string(argv[5]) + "/pid." + slot_text) << ::getpid() << std::endl;
    Stream stream({argv[1], std::atoi(argv[2]), static_cast<std::size_t>(std::atoll(argv[3])),
                   static_cast<std::uint64_t>(std::atoll(argv[4])), argv[5]},
                  slot);
    elastic::barrier();
    stream.run();
    elastic::shutdown();
    return 0;
  } catch (const std::exception& error) {
    fail(std::string("error at the caller: ") + error.what());
  }
}
