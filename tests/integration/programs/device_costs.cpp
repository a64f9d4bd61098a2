// A worker that counts what a call for tensors on a CUDA device costs besides the device's work, on
// the stand-ins: threads made, sleeps of the library, waits of the host for the device, and copies
// on the device. Ends with an error if it is more than the documents say.
#include <atomic>
#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include <vector>

#include <elastic/elastic.hpp>

#include "integration/programs/device_contribution.hpp"
#include "integration/programs/device_rank.hpp"

namespace {

std::atomic<long> threads{0};
std::atomic<long> sleeps{0};

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// Whether the code at `address` is the library's, and not a stand-in's.
bool is_ours(const void* address) {
  Dl_info info{};
  return ::dladdr(address, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "libelastic") != nullptr;
}

}  // namespace

// In place of the C library's, for all objects of this process.
extern "C" {
int pthread_create(pthread_t* made, const pthread_attr_t* how, void* (*run)(void*), void* with) {
  ++threads;
  static auto* const real = next<decltype(pthread_create)>("pthread_create");
  return real(made, how, run, with);
}
int nanosleep(const timespec* time, timespec* left) {
  if (is_ours(__builtin_return_address(0))) ++sleeps;
  static auto* const real = next<decltype(nanosleep)>("nanosleep");
  return real(time, left);
}
int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  if (is_ours(__builtin_return_address(0))) ++sleeps;
  static auto* const real = next<decltype(clock_nanosleep)>("clock_nanosleep");
  return real(clock, flags, time, left);
}
}

namespace {

using elastic::ReduceOp;
using elastic::testing::contribution;
using elastic::testing::DeviceRank;
using elastic::testing::GpuArray;
using elastic::testing::require;
using elastic::testing::write_result;
using std::chrono::steady_clock;

class Costs : DeviceRank {
 public:
  Costs(std::string folder, int device) : DeviceRank(std::move(folder), device) {}

  void run() {
    const void* const code = ::dlsym(RTLD_DEFAULT, "_ZNK7elastic4Work4waitEv");
    require(threads > 0 && is_ours(code), "this program does not count what it should");
    const auto named_and_waited = [this] { check(submit().wait()); };
    const auto named_by_stream = [this] {
      check(submit().wait(stream()));
      stream_.synchronize();
      --waits_;  // the program's own
    };
    const auto blocking = [this] {
      check(elastic::allreduce(view_of(data_), ReduceOp::kSum, stream()));
    };
    expect("a named allreduce with wait()", named_and_waited, 2);
    expect("a named allreduce with wait(stream)", named_by_stream, 1);
    expect("a blocking allreduce", blocking, 2);
    expect_copies();
    write_result(folder_, hash_);
  }

 private:
  elastic::Work submit() {
    return elastic::allreduce_async("tensor", view_of(data_), ReduceOp::kSum, stream());
  }

  /// `waits`: for the device, of each call; one is for what the program has computed before. The
  /// first calls make threads and connections, and do not count.
  template <typename Call>
  void expect(const std::string& what, const Call& call, long waits) {
    constexpr int kBefore = 10;
    constexpr int kTimes = 50;
    for (int i = 0; i < kBefore; ++i) call();
    const long threads_before = threads;
    waits_ = -waits_for_device();
    for (int i = 0; i < kTimes; ++i) {
      const long sleeps_before = sleeps;
      const auto begin = steady_clock::now();
      call();
      // A collective that takes longer may be waited for in sleep.
      const bool is_short = steady_clock::now() - begin < std::chrono::milliseconds(5);
      require(!is_short || sleeps == sleeps_before, what + ": the library has slept");
    }
    waits_ += waits_for_device();
    require(threads == threads_before, what + ": threads were made");
    require(waits_ == waits * kTimes, what + ": " + std::to_string(waits_) +
                                          " waits for the device in " + std::to_string(kTimes) +
                                          " calls");
  }

  /// NCCL writes results to outputs, but not to those that overlap the input.
  void expect_copies() {
    const GpuArray<float> gathered(gpu_, data_.count() * static_cast<std::size_t>(size_));
    const auto gather = [&] {
      check(elastic::allgather(view_of(data_), view_of(gathered), stream()).contributors);
    };
    const auto scatter = [&](const GpuArray<float>& to, ReduceOp op) {
      check(elastic::reduce_scatter(view_of(gathered), view_of(to), op, stream()).contributors);
    };
    expect_copies("an allgather", gather, 0);
    expect_copies(
        "a reduce_scatter", [&] { scatter(data_, ReduceOp::kSum); }, 0);
    expect_copies(
        "an average", [&] { scatter(data_, ReduceOp::kAverage); }, 0);
    expect_copies(
        "one that overlaps", [&] { scatter(gathered, ReduceOp::kSum); }, 1);
  }

  template <typename Call>
  void expect_copies(const std::string& what, const Call& call, long copies) {
    const long before = copies_on_device();
    call();
    const long made = copies_on_device() - before;
    require(made == copies, what + ": " + std::to_string(made) + " copies on the device");
  }

  long waits_for_device() const { return gpu_.call<long()>("cuda_stand_in_waits")(); }
  long copies_on_device() const { return gpu_.call<long()>("cuda_stand_in_copies_on_device")(); }

  const GpuArray<float> data_{gpu_, contribution<float>(rank_, 1003)};
  long waits_ = 0;
  elastic::testing::ResultHash hash_;
};

}  // namespace

int main(int, char** argv) {
  return elastic::testing::on_a_device([&](int device) { Costs(argv[1], device).run(); });
}
