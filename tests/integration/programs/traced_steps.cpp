// A worker for the timeline and the flight recorder: trains STEPS steps with named and unnamed
// calls, small and large. With FATAL_STEP, rank 1 kills itself in the middle of that step. At last
// it says
//   survived <steps>
// usage: traced_steps STEPS [groups | FATAL_STEP [PIPE]]; with PIPE rank 0 waits at the end of step
// FATAL_STEP until another process opens that named pipe, and no worker dies. With `groups` the
// first two ranks have calls of a group in each step, and send a message.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <signal.h>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/group.hpp>

namespace {

constexpr std::size_t kLarge = 1 << 20;

/// Waits until this worker's timeline, if it writes one, has the step. This polls, because no event
/// tells that another thread has written to a file.
void await_written(std::int64_t step) {
  if (elastic::timeline_file().empty()) return;
  const std::string name = "\"step " + std::to_string(step) + "\"";
  for (std::string text; text.find(name) == std::string::npos;) {
    std::ifstream file(elastic::timeline_file());
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
}

void step() {
  std::vector<float> weights(1000, 1);
  std::vector<float> bias(10, 1);
  elastic::Work first = elastic::allreduce_async("weights", std::span(weights));
  elastic::Work second = elastic::allreduce_async("bias \"quoted\"", std::span(bias));
  first.wait();
  second.wait();
  float loss = 1;
  elastic::allreduce(std::span(&loss, 1));
  std::vector<float> large(kLarge, 1);
  elastic::allreduce(large);
  elastic::broadcast(std::span(bias), 0);
  elastic::barrier();
}

void calls_of_a_group() {
  elastic::Context& job = elastic::context();
  elastic::Group& pair = job.group(elastic::GroupRule::ranks({0, 1}));
  if (pair.rank() < 0) return;
  std::vector<float> values(4, 1);
  pair.allreduce(values);
  pair.allreduce_async("in the pair", std::span(values)).wait();
  if (pair.rank() == 0) {
    job.send(elastic::view(std::span<const float>(values)), 1);
  } else {
    (void)job.recv(elastic::view(std::span(values)), 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t steps = argc > 1 ? std::atoll(argv[1]) : 0;
  const bool has_groups = argc > 2 && std::string(argv[2]) == "groups";
  const std::int64_t fatal = argc > 2 ? std::atoll(argv[2]) : 0;
  const std::string pipe = argc > 3 ? argv[3] : "";
  try {
    elastic::init();
    const int slot = elastic::rank();
    elastic::State state;
    std::int64_t done = 0;
    state.add("done", done);
    elastic::run(state, [&] {
      while (done < steps) {
        ++done;
        if (done == fatal && pipe.empty() && slot == 1) {
          await_written(fatal - 1);
          ::kill(::getpid(), SIGKILL);
        }
        step();
        if (has_groups) calls_of_a_group();
        if (done == fatal && !pipe.empty() && slot == 0) std::ifstream(pipe).get();
        state.commit();
      }
    });
    std::printf("survived %lld\n", static_cast<long long>(done));
    std::fflush(stdout);
    elastic::shutdown();
  } catch (const elastic::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
