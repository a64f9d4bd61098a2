// A worker of which rank 1 is slow to load its data, rank 2 kills itself in the middle of the
// training, and all tell in a file <FOLDER>/steps.<slot> where the time went: a line per step,
//   <commits> <view change> <data> <sum of all phases>     in nanoseconds, up to that step
// and a line for each step that the ranks compared:
//   compared <commits> <slowest> <data of rank 0> <data of rank 1> ...
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <signal.h>
#include <span>
#include <string>
#include <thread>
#include <unistd.h>

#include <elastic/elastic.hpp>

namespace {

constexpr std::int64_t kSteps = 30;
constexpr std::int64_t kFatalStep = 17;
constexpr std::chrono::milliseconds kLoading{5};

void step(std::int64_t number, int slot) {
  {
    const auto loading = elastic::loading_data();
    if (slot == 1) std::this_thread::sleep_for(kLoading);  // the time that is to be found again
  }
  float value = 1;
  elastic::Work named = elastic::allreduce_async("named", std::span(&value, 1));
  if (slot == 2 && number == kFatalStep) ::kill(::getpid(), SIGKILL);
  named.wait();
  elastic::allreduce(std::span(&value, 1));
}

void tell(std::ofstream& file, std::uint64_t commits) {
  const elastic::StepTimes times = elastic::step_times();
  file << commits << ' ' << times.sum.view_change.count() << ' ' << times.sum.data.count() << ' '
       << times.sum.total().count() << '\n';
  if (times.compared_commit != commits) return;
  file << "compared " << commits << ' ' << times.slowest;
  for (const elastic::StepTime& rank : times.by_rank) file << ' ' << rank.data.count();
  file << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: timed_steps FOLDER\n");
    return 2;
  }
  const char* const slot = std::getenv("ELASTIC_SLOT");
  std::ofstream file(std::string(argv[1]) + "/steps." + slot);
  elastic::init();
  std::int64_t steps = 0;
  elastic::State state;
  state.add("steps", steps);
  elastic::run(state, [&] {
    while (steps < kSteps) {
      step(steps, std::atoi(slot));
      ++steps;
      state.commit();
      tell(file, state.commits());
    }
  });
  elastic::shutdown();
  return 0;
}
