// Measures the cost of recoverability: compares allreduces of the native backend with and without
// it, in the same two threads, which are ranks on shared memory.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/socket.h>

#include "collectives/backend/native/native_backend.hpp"
#include "collectives/transport/linker.hpp"
#include "collectives/transport/shm/shm.hpp"

namespace elastic::bench {
namespace {

using collectives::Buffer;
using collectives::Payload;
using transport::LinkPtr;
using transport::StreamPtr;

constexpr int kRanks = 2;
constexpr std::size_t kLeastBytes = std::size_t{128} << 10;  // smaller tensors are packed: a copy
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

/// A rank's tensors. They are zeros, which stay zeros and are reduced at the same speed as others.
struct Tensors {
  std::vector<std::byte> input = std::vector<std::byte>(kMostBytes);
  std::vector<std::byte> output = std::vector<std::byte>(kMostBytes);
};

/// One rank's side of a lane. Owned by the thread of this rank.
class Rank {
 public:
  Rank(std::unique_ptr<collectives::Backend> backend, Tensors& tensors)
      : backend_(std::move(backend)), tensors_(tensors) {}

  Status allreduce(std::size_t bytes, bool in_place) {
    collectives::Call call;
    call.kind = collectives::Kind::kAllreduce;
    call.fingerprint.count = bytes;
    payload_.clear();
    payload_.undo = &undo_;
    const collectives::ZeroCopyTensor tensor{
        DType::kF32, bytes / sizeof(float), tensors_.input.data(),
        in_place ? tensors_.input.data() : tensors_.output.data()};
    payload_.form = collectives::ZeroCopyTensors{{&tensor, 1}};
    Status status = backend_->run(position_++, call, payload_);
    payload_.release_tensors();
    return status.ok() ? backend_->settle() : status;
  }

 private:
  std::unique_ptr<collectives::Backend> backend_;
  Tensors& tensors_;
  Payload payload_;
  Buffer undo_;
  std::uint64_t position_ = 0;
};

template <typename Value>
Value need(Result<Value> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return std::move(result).value();
}

std::pair<StreamPtr, StreamPtr> shm_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error("no socket pair");
  }
  UniqueFd offers(ends[0]);
  UniqueFd accepts(ends[1]);
  auto offered =
      need(transport::offer_shm(offers.get(), transport::LinkerOptions{}.shm_ring_bytes, nullptr));
  StreamPtr accepted = need(transport::accept_shm(std::move(accepts), nullptr));
  return {need(transport::conclude_shm(std::move(offers), std::move(offered))),
          std::move(accepted)};
}

std::unique_ptr<collectives::Backend> backend_on(StreamPtr stream, int rank, bool recoverable) {
  std::vector<StreamPtr> streams;
  streams.push_back(std::move(stream));
  std::vector<LinkPtr> links(kRanks);
  links[static_cast<std::size_t>(1 - rank)] =
      std::make_shared<transport::Link>(std::move(streams), "the other rank");
  collectives::NativeOptions options;
  options.recoverable = recoverable;
  return collectives::make_native_backend(
      1, std::make_shared<transport::Mesh>(rank, std::move(links)), options);
}

/// Both ranks of a lane.
struct Lane {
  Lane(Tensors (&tensors)[kRanks], bool recoverable) {
    auto [first, second] = shm_pair();
    ranks.emplace_back(backend_on(std::move(first), 0, recoverable), tensors[0]);
    ranks.emplace_back(backend_on(std::move(second), 1, recoverable), tensors[1]);
  }
  std::vector<Rank> ranks;
};

void time_allreduces(benchmark::State& state, Lane& lane, std::size_t bytes, bool in_place) {
  Rank& rank = lane.ranks[static_cast<std::size_t>(state.thread_index())];
  const auto start = std::chrono::steady_clock::now();
  for (auto iteration : state) {
    (void)iteration;
    if (const Status status = rank.allreduce(bytes, in_place); !status.ok()) {
      state.SkipWithError(status.message().c_str());
      break;
    }
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  if (state.thread_index() == 0) {
    state.counters["call_us"] = took.count() / static_cast<double>(state.iterations());
  }
}

void add_all(Lane& recoverable, Lane& without) {
  for (std::size_t bytes = kLeastBytes; bytes <= kMostBytes; bytes *= 2) {
    for (const bool in_place : {false, true}) {
      for (Lane* lane : {&recoverable, &without}) {
        const std::string name = std::string(in_place ? "in_place/" : "out_of_place/") +
                                 (lane == &recoverable ? "recoverable/" : "without/") +
                                 std::to_string(bytes);
        benchmark::RegisterBenchmark(
            name.c_str(),
            [=](benchmark::State& state) { time_allreduces(state, *lane, bytes, in_place); })
            ->Threads(kRanks)
            ->UseRealTime();
      }
    }
  }
}

}  // namespace
}  // namespace elastic::bench

int main(int argc, char** argv) {
  using elastic::bench::Lane;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  elastic::bench::Tensors tensors[elastic::bench::kRanks];
  Lane recoverable(tensors, true);
  Lane without(tensors, false);
  elastic::bench::add_all(recoverable, without);
  benchmark::RunSpecifiedBenchmarks();
}
