// A worker of which rank 1 is slow to load its data, rank 2 kills itself in the middle of the
// training while the others wait for it, and all tell in a file where the time went. In
// <FOLDER>/steps.<slot> there is a line per step,
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

std::string call_file(const std::string& folder, int slot) {
  return folder + "/calls." + std::to_string(slot);
}

/// Says that the worker is about to wait for the others.
void tell_of_call(const std::string& folder, int slot) {
  std::ofstream(call_file(folder, slot)) << ::getpid() << '\n';
}

/// Returns when the worker waits for this one: it has said that it is about to, and sleeps. This
/// polls, because no event tells that another process has gone to sleep.
void await_call(const std::string& folder, int slot) {
  for (char state = 0; state != 'S'; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    std::string process;
    if (!std::getline(std::ifstream(call_file(folder, slot)), process)) continue;
    std::string words;
    std::getline(std::ifstream("/proc/" + process + "/stat"), words);
    const std::size_t name_end = words.rfind(") ");
    if (name_end != std::string::npos) state = words[name_end + 2];
  }
}

void step(std::int64_t number, int slot, const std::string& folder) {
  {
    const auto loading = elastic::loading_data();
    if (slot == 1) std::this_thread::sleep_for(kLoading);  // the time that is to be found again
  }
  float value = 1;
  elastic::Work named = elastic::allreduce_async("named", std::span(&value, 1));
  if (number == kFatalStep) {
    if (slot == 2) {
      for (int other : {0, 1}) await_call(folder, other);
      ::kill(::getpid(), SIGKILL);
    }
    tell_of_call(folder, slot);
  }
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
  const std::string folder = argv[1];
  std::ofstream file(folder + "/steps." + slot);
  elastic::init();
  std::int64_t steps = 0;
  elastic::State state;
  state.add("steps", steps);
  elastic::run(state, [&] {
    while (steps < kSteps) {
      step(steps, std::atoi(slot), folder);
      ++steps;
      state.commit();
      tell(file, state.commits());
    }
  });
  elastic::shutdown();
  return 0;
}
