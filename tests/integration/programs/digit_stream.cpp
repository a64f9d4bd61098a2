// A worker that proves which workers were counted in each collective: it contributes 10^slot, so
// the decimal digits of a sum show how often each worker is in it. Checks every sum by itself and
// writes it to <log>/<slot>, for the test to compare between workers. With "device_" in front of
// the mode, the tensors are on a CUDA device.
#include <algorithm>
#include <atomic>
#include <bit>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/group.hpp>

#include "cuda/driver_calls.hpp"
#include "integration/programs/check_program.hpp"

namespace {

using elastic::testing::fail;
using elastic::testing::Gpu;
using elastic::testing::GpuArray;
using elastic::testing::GpuStream;

struct Arguments {
  std::string mode;  // "blocking", "named", "mixed", "moves" or "groups"; "held", then "blocking"
  bool on_device = false;
  int calls = 0;
  std::size_t most_elements = 0;
  std::uint64_t seed = 0;
  std::string log;
};

constexpr std::string_view kOnDevice = "device_";
/// No test has more workers.
constexpr std::size_t kMostWorkers = 8;

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

/// Elements that are all the same: in host memory, or, with a `gpu`, on that device.
class Tensor {
 public:
  Tensor(std::size_t count, std::int64_t value, const std::optional<Gpu>& gpu)
      : values_(count, value) {
    if (gpu) array_.emplace(*gpu, values_);
  }
  elastic::TensorView view() {
    return array_ ? elastic::cuda_view(array_->data(), array_->count())
                  : elastic::view(std::span<std::int64_t>(values_));
  }
  std::vector<std::int64_t> values() const { return array_ ? array_->read() : values_; }

 private:
  std::vector<std::int64_t> values_;
  std::optional<GpuArray<std::int64_t>> array_;
};

/// A program that has no tensor on a device is not to get the driver of one.
void expect_no_driver() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libcuda.so") != std::string::npos) fail("the CUDA driver is loaded");
  }
}

class Stream {
 public:
  Stream(Arguments arguments, int slot)
      : arguments_(std::move(arguments)),
        slot_(slot),
        log_(arguments_.log + "/" + std::to_string(slot)),
        shared_(arguments_.seed),
        own_(arguments_.seed * 31 + static_cast<std::uint64_t>(slot)) {
    if (arguments_.on_device) gpu_.emplace(0);
  }

  void run() {
    if (arguments_.mode == "held") held_call();
    if (arguments_.mode == "groups") find_partners();
    for (int call = 0; call < arguments_.calls; ++call) {
      const bool named =
          arguments_.mode == "named" || (arguments_.mode == "mixed" && call % 2 == 1);
      if (arguments_.mode == "moves") {
        moving_call(call);
      } else if (arguments_.mode == "groups") {
        group_step(call);
      } else {
        named ? named_step() : blocking_call();
      }
    }
    if (!arguments_.on_device) expect_no_driver();
    log_ << "end" << std::endl;
  }

 private:
  std::size_t next_count() {
    // Every size class as often as any other: the plans differ by size.
    const auto bits = shared_() % static_cast<unsigned>(std::bit_width(arguments_.most_elements));
    return std::min<std::size_t>(arguments_.most_elements,
                                 1 + shared_() % (std::size_t{1} << bits));
  }

  void blocking_call() {
    Tensor tensor(next_count(), digit(slot_), gpu_);
    const elastic::Contributors who = elastic::allreduce(tensor.view());
    log_ << checked_sum(tensor.values(), who.size(), slot_) << std::endl;
  }

  void moving_call(int call) try {
    const std::size_t count = next_count() + kMostWorkers;  // so that no part is empty
    Tensor tensor(count, digit(slot_), gpu_);
    if (call % 3 == 0) {
      elastic::broadcast(tensor.view(), 0);
      log_ << tensor.values().front() << std::endl;
      if (tensor.values() != std::vector<std::int64_t>(count, tensor.values().front())) {
        fail("mixed values in a broadcast");
      }
    } else if (call % 3 == 1) {
      Tensor all(count * kMostWorkers, 0, gpu_);
      const auto members = static_cast<std::size_t>(elastic::size());
      const elastic::GatheredBlocks blocks = elastic::allgather(tensor.view(), all.view());
      log_ << checked_sum(sums_of_blocks(all.values(), blocks, members * count),
                          blocks.counts.size(), slot_)
           << std::endl;
    } else {
      Tensor out(count, 0, gpu_);
      const elastic::ScatteredPart part = elastic::reduce_scatter(tensor.view(), out.view());
      std::vector<std::int64_t> sums = out.values();
      sums.resize(part.count);
      log_ << checked_sum(sums, part.contributors.size(), slot_) << std::endl;
    }
  } catch (const elastic::Error& error) {
    if (!error.retryable()) throw;
    log_ << "lost" << std::endl;
  }

  /// Calls of groups that overlap, in another order on each worker, beside one of all.
  void group_step(int call) {
    elastic::Context& job = elastic::context();
    std::vector<elastic::Group*> groups{&job.group(elastic::GroupRule::every(2)),
                                        &job.group(elastic::GroupRule::every(2, 1)),
                                        &job.group(elastic::GroupRule::ranks({0, 1, 3})),
                                        &job.group(elastic::GroupRule::per_host())};
    std::vector<std::size_t> counts;
    for (std::size_t i = 0; i <= groups.size(); ++i) counts.push_back(next_count());
    std::vector<std::size_t> order{0, 1, 2, 3};
    std::shuffle(order.begin(), order.end(), own_);
    std::vector<std::vector<std::int64_t>> sums(groups.size());
    std::vector<elastic::Work> works(groups.size());
    for (const std::size_t i : order) {
      if (groups[i]->rank() < 0) continue;
      sums[i].assign(counts[i], digit(slot_));
      works[i] = groups[i]->allreduce_async("sum", sums[i]);
    }
    blocking_call();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i]->rank() < 0) continue;
      const std::int64_t sum = checked_sum(sums[i], works[i].wait().size(), slot_);
      groups_log_ << call << " " << i << " " << sum << std::endl;
    }
    Tensor blocking(counts.front(), digit(slot_), gpu_);
    const std::size_t added = groups.back()->allreduce(blocking.view()).size();
    groups_log_ << call << " 6 " << checked_sum(blocking.values(), added, slot_) << std::endl;
    elastic::Group& odd = job.group(elastic::GroupRule::every(2, slot_ % 2));
    std::vector<std::int64_t> moved(counts.back(), digit(slot_));
    const auto gathered = odd.allgather(moved);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < gathered.values.size(); i += counts.back())
      sum += gathered.values[i];
    groups_log_ << call << " " << 4 + slot_ % 2 << " " << sum << std::endl;
    message(call, counts.front());
  }

  void find_partners() {
    const auto slots = elastic::allgather(std::vector<std::int64_t>{slot_});
    const auto workers = slots.contributors.workers();
    for (std::size_t i = 0; i < workers.size(); ++i) {
      by_slot_[static_cast<int>(slots.values[i])] = workers[i];
    }
  }

  /// From each even slot to the one after it, unless one of the two has died.
  void message(int call, std::size_t count) try {
    const auto partner = by_slot_.find(slot_ ^ 1);
    if (partner == by_slot_.end()) return;
    const elastic::Root peer = elastic::Root::worker(partner->second);
    if (slot_ % 2 == 0) {
      elastic::context().send(std::vector<std::int64_t>(count, call), peer);
      return;
    }
    std::vector<std::int64_t> room(count + 1, -1);
    const std::size_t came = elastic::context().recv(room, peer).count;
    std::vector<std::int64_t> right(count, call);
    right.push_back(-1);
    if (came != count || room != right) fail("another message than was sent");
  } catch (const elastic::Error& error) {
    if (!error.retryable()) throw;
    groups_log_ << call << " message-of-" << slot_ << " lost" << std::endl;
  }

  /// The sum over the blocks, element by element. Expects that nothing was written behind the
  /// `most` elements that the members before a death may have given.
  static std::vector<std::int64_t> sums_of_blocks(const std::vector<std::int64_t>& all,
                                                  const elastic::GatheredBlocks& blocks,
                                                  std::size_t most) {
    std::vector<std::int64_t> sums(blocks.counts.front());
    if (blocks.count != sums.size() * blocks.counts.size()) fail("blocks of other sizes");
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i < blocks.count) {
        sums[i % sums.size()] += all[i];
      } else if (i >= most && all[i] != 0) {
        fail("an allgather wrote behind the blocks");
      }
    }
    return sums;
  }

  /// The last worker dies while the first one's device is still at work on a tensor.
  void held_call() {
    const bool dies = slot_ + 1 == elastic::size();
    Tensor tensor(1000, digit(slot_), gpu_);
    // Memory to go through is there already: to get it may wait for a device.
    elastic::allreduce(Tensor(1000, 0, gpu_).view());
    const GpuStream stream(*gpu_);
    std::atomic<bool> gate{slot_ != 0};
    stream.hold(gate);
    const elastic::Work work =
        elastic::allreduce_async("held", tensor.view(), elastic::ReduceOp::kSum, {stream.handle()});
    elastic::barrier();
    if (dies) ::raise(SIGKILL);
    blocking_call();  // ends in a view without the dead
    gate = true;
    gate.notify_all();
    const elastic::Contributors who = work.wait();
    log_ << checked_sum(tensor.values(), who.size(), slot_) << std::endl;
  }

  void named_step() {
    std::vector<Tensor> tensors;
    for (int i = 0; i < 6; ++i) tensors.emplace_back(next_count() / 4 + 1, digit(slot_), gpu_);
    std::vector<std::size_t> order(tensors.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (elastic::rank() != 0) std::shuffle(order.begin(), order.end(), own_);
    std::vector<elastic::Work> works(tensors.size());
    for (const std::size_t i : order) {
      works[i] = elastic::allreduce_async("t" + std::to_string(i), tensors[i].view());
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
      const elastic::Contributors who = works[i].wait();
      log_ << checked_sum(tensors[i].values(), who.size(), slot_) << std::endl;
    }
  }

  Arguments arguments_;
  int slot_;
  std::optional<Gpu> gpu_;
  std::ofstream log_;
  std::ofstream groups_log_{arguments_.log + "/groups." + std::to_string(slot_)};
  std::map<int, elastic::WorkerId> by_slot_;  // for messages
  std::mt19937_64 shared_;                    // the same on all workers
  std::mt19937_64 own_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) fail("usage: digit_stream MODE CALLS MOST_ELEMENTS SEED LOG_FOLDER");
  const char* slot_text = std::getenv("RANK");
  if (slot_text == nullptr) slot_text = std::getenv("OMPI_COMM_WORLD_RANK");
  if (slot_text == nullptr) fail("RANK is not set: start me with elasticrun or mpirun");
  const int slot = std::atoi(slot_text);
  return elastic::testing::as_a_worker([&] {
    std::ofstream(std::string(argv[5]) + "/pid." + slot_text) << ::getpid() << std::endl;
    const bool on_device = std::string(argv[1]).starts_with(kOnDevice);
    Stream stream({std::string(argv[1]).substr(on_device ? kOnDevice.size() : 0), on_device,
                   std::atoi(argv[2]), static_cast<std::size_t>(std::atoll(argv[3])),
                   static_cast<std::uint64_t>(std::atoll(argv[4])), argv[5]},
                  slot);
    elastic::barrier();
    stream.run();
  });
}
