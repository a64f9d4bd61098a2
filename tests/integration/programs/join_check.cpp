// A worker with uneven data: it makes steps, and joins the others when it has no more. Writes
// <log>/<rank at the start> when all has been right. The scene says what happens:
//   steps            rank r makes r steps in one epoch, and size - r in the next
//   errors           calls that need the data of all ranks fail
//   joined-dies      rank 1 joins and dies in that, while the others make steps
//   unjoined-dies    rank 1 makes the last steps alone, and dies after them without a join
//   comes            within `run`: a worker that replaces rank 1 makes its own steps, and joins
//   comes-meanwhile  while two others are in a call of a group, on threads of their own
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/group.hpp>
#include <elastic/training.hpp>

#include "integration/programs/check_program.hpp"

namespace {

using elastic::Context;
using elastic::ErrorCode;
using elastic::GroupRule;
using elastic::JoinOutcome;
using elastic::ReduceOp;
using elastic::Work;
using elastic::testing::must_fail;
using elastic::testing::require;

using Numbers = std::vector<std::int64_t>;
using Floats = std::vector<float>;

constexpr std::size_t kCounts[] = {3, 1000, 300'001};

class Uneven {
 public:
  explicit Uneven(std::string folder)
      : folder_(std::move(folder)),
        job_(elastic::context()),
        rank_(job_.rank()),
        size_(job_.size()) {}

  /// One step: tensors of several sizes, ops and types. Those with data are the ranks from `first`
  /// up to `end`; with none of them given, it does not matter which they are.
  void step(int first = 0, int end = 0) {
    std::vector<Numbers> sums;
    std::vector<Work> works;
    for (const std::size_t count : kCounts) sums.emplace_back(count, rank_ + 1);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      works.push_back(job_.allreduce_async("sum" + std::to_string(i), std::span(sums[i])));
    }
    Floats mean(1000, 6);
    Floats least(1000, static_cast<float>(rank_));
    Floats product(10, 2);
    Floats scaled(10, static_cast<float>(rank_ - 10));
    works.push_back(job_.allreduce_async("mean", std::span(mean), ReduceOp::kAverage));
    works.push_back(job_.allreduce_async("least", std::span(least), ReduceOp::kMin));
    works.push_back(job_.allreduce_async("product", std::span(product), ReduceOp::kProduct));
    works.push_back(job_.allreduce_async("scaled", elastic::view(std::span(scaled)), ReduceOp::kMax,
                                         elastic::Scale(-1, 1)));
    works.push_back(job_.barrier_async("barrier"));
    elastic::wait_all(works);
    if (end == 0) return;
    std::int64_t total = 0;
    for (int rank = first; rank < end; ++rank) total += rank + 1;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      require(sums[i] == Numbers(kCounts[i], total), "the sum of those that have data");
    }
    const float whole = 6 * static_cast<float>(end - first) / static_cast<float>(size_);
    require(std::abs(mean.front() - whole) < 1e-5F, "an average over all ranks");
    require(least == Floats(1000, static_cast<float>(first)), "a minimum");
    require(product.back() == static_cast<float>(1 << (end - first)), "a product");
    require(scaled.back() == static_cast<float>(10 - first), "a maximum of multiples");
  }

  /// In even epochs the higher ranks have more data, in odd ones the lower ranks.
  void steps() {
    for (int epoch = 0; epoch < 4; ++epoch) {
      const bool rising = epoch % 2 == 0;
      const int own = epoch + (rising ? rank_ : size_ - 1 - rank_);
      for (int made = 0; made < own; ++made) {
        const int without = std::max(0, made - epoch + 1);
        rising ? step(without, size_) : step(0, size_ - without);
      }
      const JoinOutcome end = job_.join();
      require(end.contributors.size() == static_cast<std::size_t>(size_), "all have joined");
      require(end.last_rank == (rising ? size_ - 1 : 0),
              "rank " + std::to_string(end.last_rank) + " was last");
      everything_works();
    }
  }

  void errors() {
    elastic::Group& all = job_.group(elastic::GroupRule::every(1));
    for (int joined = 0; joined < size_; ++joined) {
      Numbers one(1, 1);
      std::thread other;
      if (rank_ != joined) {
        const std::vector<std::string> words = {"rank", "has called join"};
        Numbers gathered(static_cast<std::size_t>(size_));
        // Until the other's join is known these would wait for it.
        job_.barrier_async("before").wait();
        must_fail("allgather", ErrorCode::kMismatch, words, [&] {
          job_.allgather_async("g", elastic::view(std::span<const std::int64_t>(one)),
                               elastic::view(std::span(gathered)))
              .wait();
        });
        must_fail("broadcast", ErrorCode::kMismatch, words,
                  [&] { job_.broadcast_async("b", elastic::view(std::span(one)), 0).wait(); });
        must_fail("a call of a group", ErrorCode::kMismatch, words,
                  [&] { (void)all.allreduce(std::int64_t{1}); });
        Numbers sum(5, 1);
        all.allreduce_async("in a group", std::span(sum)).wait();
        require(sum == Numbers(5, size_ - 1), "a named sum of a group");
        tell("joined." + std::to_string(joined));
        await("refused." + std::to_string(joined));
      } else {
        other = std::thread([&] {
          await("joined." + std::to_string(joined));
          must_fail("a call from within join", ErrorCode::kInvalidArgument, {"'late'", "in join"},
                    [&] { (void)job_.allreduce_async("late", std::span(one)); });
          must_fail("join twice", ErrorCode::kInvalidArgument, {"under way"}, [&] { job_.join(); });
          tell("refused." + std::to_string(joined));
        });
      }
      require(job_.join().last_rank != joined, "one of the others was last");
      if (other.joinable()) other.join();
      require(all.allreduce(std::int64_t{1}) == size_, "an unnamed sum of a group");
      everything_works();
    }
  }

  void joined_dies() {
    if (rank_ == 1) {
      std::thread(
          [] {  // no event says that a thread waits in join; before it the outcome is the same
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            ::kill(::getpid(), SIGKILL);
          })
          .detach();
    } else {
      while (job_.size() == size_) step();
      for (int made = 0; made < 3; ++made) step();
    }
    const JoinOutcome end = job_.join();
    require(end.contributors.size() == static_cast<std::size_t>(size_ - 1), "the dead has joined");
    everything_works();
  }

  void unjoined_dies() {
    const int steps =
        rank_ == 1 ? size_ + 3 : size_ - rank_;  // of those that join, rank 0's are most
    for (int made = 0; made < steps; ++made) step();
    if (rank_ == 1) ::kill(::getpid(), SIGKILL);
    const JoinOutcome end = job_.join();
    require(end.contributors.size() == static_cast<std::size_t>(size_ - 1), "the dead has joined");
    require(end.last_rank == 0, "the survivor with the most steps was last");
    must_fail("a name of the library", ErrorCode::kInvalidArgument, {"elastic.join", "own"},
              [&] { job_.barrier_async("elastic.join").wait(); });
    everything_works();
  }

 private:
  void everything_works() {
    require(job_.allreduce(std::int64_t{1}) == job_.size(), "an unnamed sum");
    Numbers one(1, 1);
    job_.allreduce_async("after", std::span(one)).wait();
    require(one.front() == job_.size(), "a named sum");
    Numbers gathered(static_cast<std::size_t>(size_));
    const auto all = job_.allgather_async("g", elastic::view(std::span<const std::int64_t>(one)),
                                          elastic::view(std::span(gathered)))
                         .wait();
    require(all.count == static_cast<std::size_t>(job_.size()), "an allgather");
  }

  /// Events beside the calls of the library: files.
  void tell(const std::string& event) { std::ofstream(folder_ + "/" + event) << std::endl; }
  void await(const std::string& event) {
    while (!std::filesystem::exists(folder_ + "/" + event)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const std::string folder_;
  Context& job_;
  const int rank_;
  const int size_;
};

/// The worker in slot 1 dies in the first epoch. The others join without it, and wait until a
/// worker has come in its place, which joins in the later ones.
void train_with_a_comer() {
  std::int64_t epoch = 0;
  elastic::State state;
  state.add("epoch", epoch);
  const bool dies = elastic::rank() >= 0 && std::getenv("ELASTIC_SLOT") == std::string("1");
  elastic::run(state, [&] {
    while (epoch < 3) {
      (void)elastic::allreduce(std::int64_t{1});
      if (dies) ::kill(::getpid(), SIGKILL);
      if (epoch == 0 || elastic::size() == 3) {
        for (int made = 0; made <= elastic::rank(); ++made) {
          Numbers sum(1000, 1);
          elastic::allreduce_async("sum", std::span(sum)).wait();
        }
        const std::size_t joined = elastic::join().contributors.size();
        require(joined == (epoch == 0 ? 2 : 3), std::to_string(joined) + " have joined");
        ++epoch;
      }
      state.commit();
    }
  });
}

/// The worker in slot 2 dies, and another one comes. The first two make a call of their group, one
/// of them before that and the other one after it.
void group_call_while_a_worker_comes() {
  const std::string slot = std::getenv("ELASTIC_SLOT");
  std::int64_t step = 0;
  std::int64_t steps_with_comer = 0;
  std::vector<elastic::WorkerId> pair;
  elastic::State state;
  state.add("step", step);
  state.add("steps_with_comer", steps_with_comer);
  std::thread caller;
  std::int64_t sum = -1;
  const auto call = [&] {
    caller = std::thread([&, &group = elastic::context().group(GroupRule::workers(pair))] {
      sum = group.allreduce(std::int64_t{1});
    });
  };
  const bool is_first = elastic::rank() >= 0;  // and no replacement
  if (is_first) {
    const elastic::Contributors members = elastic::members();
    pair.assign(members.workers().begin(), members.workers().begin() + 2);
  }
  elastic::run(state, [&] {
    while (steps_with_comer < 5) {
      if (slot == "0" && step == 2) call();
      if (slot == "2" && is_first && step == 4) ::kill(::getpid(), SIGKILL);
      (void)elastic::allreduce(std::int64_t{1});
      ++step;
      if (step > 5 && elastic::size() == 3 && ++steps_with_comer == 3 && slot == "1") call();
      state.commit();
    }
  });
  if (!caller.joinable()) return;
  caller.join();
  require(sum == 2, "a call of a group that a worker which comes has no part in");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) elastic::testing::fail("usage: join_check LOG_FOLDER SCENE");
  const std::string scene = argv[2];
  return elastic::testing::as_a_worker([&] {
    const std::string rank = std::to_string(elastic::rank());
    if (scene == "steps") {
      Uneven(argv[1]).steps();
    } else if (scene == "errors") {
      Uneven(argv[1]).errors();
    } else if (scene == "joined-dies") {
      Uneven(argv[1]).joined_dies();
    } else if (scene == "unjoined-dies") {
      Uneven(argv[1]).unjoined_dies();
    } else if (scene == "comes") {
      train_with_a_comer();
    } else if (scene == "comes-meanwhile") {
      group_call_while_a_worker_comes();
    } else {
      elastic::testing::fail("unknown scene " + scene);
    }
    std::ofstream(std::string(argv[1]) + "/" + rank) << "end" << std::endl;
  });
}
