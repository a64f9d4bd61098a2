// A worker that, after named and unnamed operations, does nothing, and counts how often its threads
// wake up. Ends well once all but this thread and the control thread have slept for some seconds on
// end; a thread that polls never does.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <unistd.h>

#include <elastic/elastic.hpp>

namespace {

constexpr int kIdleSeconds = 3;
constexpr int kMostSeconds = 40;

/// How often each thread of this process has slept, without the calling one, which is the first.
std::map<std::string, std::uint64_t> sleeps_by_thread() {
  std::map<std::string, std::uint64_t> sleeps;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string id = task.path().filename();
    if (id == std::to_string(::getpid())) continue;
    std::ifstream status(task.path() / "status");
    std::string name;
    for (std::string word; status >> word;) {
      if (word == "Name:") status >> name;
      if (word == "voluntary_ctxt_switches:") status >> sleeps[name + " " + id];
    }
  }
  return sleeps;
}

void use_both_lanes() {
  float value = 1;
  elastic::allreduce(std::span(&value, 1));
  elastic::allreduce_async("value", std::span(&value, 1)).wait();
}

}  // namespace

int main() {
  elastic::init();
  use_both_lanes();
  int idle = 0;
  auto before = sleeps_by_thread();
  for (int second = 0; second < kMostSeconds && idle < kIdleSeconds; ++second) {
    std::this_thread::sleep_for(std::chrono::seconds(1));  // what is counted is what happens in it
    const auto after = sleeps_by_thread();
    ++idle;
    for (const auto& [thread, sleeps] : after) {
      const std::uint64_t woken = sleeps - before[thread];
      std::printf("%s: %d wake-ups\n", thread.c_str(), static_cast<int>(woken));
      if (thread.rfind("elastic-control", 0) != 0 && woken > 0) idle = 0;
    }
    before = after;
  }
  use_both_lanes();
  elastic::shutdown();
  return idle == kIdleSeconds ? 0 : 3;
}
