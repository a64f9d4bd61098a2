// Ranks of which rank 0 waits for the others, which come only after its InterruptCheck has ended
// the wait. The mode says what it waits in: "small" or "large" (an allreduce), "named"
// (Work::wait), "shutdown", "signals" (that come often), "turn" (of another thread's call),
// "joiner" (until it is admitted). In "thrown" and "beside_calls" nothing is interrupted: they end
// while other calls are under way. The second argument is a folder for files that tell what has
// happened.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/interrupt.hpp>
#include <sys/time.h>

#include "integration/programs/check_program.hpp"

namespace {

using elastic::testing::fail;

struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted on purpose") {}
};

/// Waits in `call`, which the second look at the interrupt ends.
template <typename Call>
void interrupt(const Call& call) {
  int looks = 0;
  const elastic::InterruptCheck check([&looks] {
    if (++looks == 2) throw Interrupted();
  });
  try {
    call();
  } catch (const Interrupted&) {
    return;
  }
  fail("the exception of the check is lost");
}

/// Looks again and again: the file is of another process, and its making is no event here.
void wait_for(const std::filesystem::path& file) {
  while (!std::filesystem::exists(file)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void interrupted_allreduce(std::size_t count) {
  std::vector<double> ones(count, 1);
  if (elastic::rank() == 0) {
    interrupt([&] { elastic::allreduce(ones); });
    elastic::testing::must_fail("after an interrupt", elastic::ErrorCode::kInternal,
                                {"left the job", "interrupted on purpose"},
                                [] { elastic::barrier(); });
    std::_Exit(0);
  }
  while (elastic::size() == 3) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const elastic::Contributors contributors = elastic::allreduce(ones);
  if (contributors.size() != 2 || ones.back() != 2) fail("the sum is wrong");
}

void interrupted_wait(const std::filesystem::path& folder) {
  std::vector<double> ones(1000, 1);
  if (elastic::rank() != 0) wait_for(folder / "interrupted");
  const elastic::Work work = elastic::allreduce_async("ones", ones);
  if (elastic::rank() == 0) {
    interrupt([&] { (void)work.wait(); });
    std::ofstream(folder / "interrupted").close();
  }
  if (work.wait().size() != 3 || ones.back() != 3) fail("the sum is wrong");
}

/// A signal that comes more often than the library looks by itself.
void interrupted_by_signals() {
  if (elastic::rank() != 0) {
    while (elastic::size() == 3) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return;
  }
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 20'000}, {0, 20'000}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  interrupt([] { elastic::barrier(); });
  std::_Exit(0);
}

/// Waits for its turn, as another thread is in a collective.
void interrupted_turn(const std::filesystem::path& folder) {
  std::vector<double> ones(1000, 1);
  if (elastic::rank() != 0) wait_for(folder / "interrupted");
  if (elastic::rank() == 0) {
    std::atomic<bool> has_turn{false};
    std::thread other([&] {
      const elastic::InterruptCheck waits([&] { has_turn = true; });
      elastic::allreduce(ones);
    });
    while (!has_turn) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    interrupt([] { elastic::barrier(); });
    std::ofstream(folder / "interrupted").close();
    other.join();
  } else {
    elastic::allreduce(ones);
  }
  if (ones.back() != 3) fail("the sum is wrong");
}

/// After an exception that left `run`, shutdown waits for no worker, though a named operation is
/// under way that the others have not come to.
void shutdown_with_named_operation() {
  elastic::State state;
  std::vector<double> named(10, 1);
  std::vector<double> ones(10, 1);
  try {
    elastic::run(state, [&] {
      if (elastic::rank() == 0) {
        (void)elastic::allreduce_async("named", named);
        throw Interrupted();
      }
      while (elastic::allreduce(ones).size() == 3) std::fill(ones.begin(), ones.end(), 1);
    });
  } catch (const Interrupted&) {
    if (elastic::rank() != 0) throw;
  }
}

/// Threads that call something all the time see an error when the context is shut down.
void shutdown_beside_calls() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([i] {
      std::vector<double> ones(10, 1);
      try {
        for (;;) {
          if (i == 0) {
            elastic::allreduce(ones);
          } else if (elastic::rank() >= 3) {
            fail("the rank is wrong");
          }
        }
      } catch (const elastic::Error&) {
        // At the shutdown.
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // some calls are under way
  elastic::shutdown();
  for (std::thread& thread : threads) thread.join();
  std::_Exit(0);
}

/// A replacement that is interrupted while it waits to be admitted, and does not end then.
void interrupted_joiner(const std::filesystem::path& folder) {
  const bool first_life = std::string(std::getenv("ELASTIC_RESTART")) == "0";
  elastic::State state;
  std::vector<double> ones(10, 1);
  if (!first_life) {
    interrupt([&] { elastic::run(state, [] {}); });
    std::ofstream(folder / "interrupted").close();
    wait_for(folder / "finished");
    std::_Exit(0);
  }
  elastic::run(state, [&] {
    const int me = elastic::rank();
    // No commit, where the replacement would be admitted, before it has been interrupted.
    const auto interrupted = [&] {
      const int here = std::filesystem::exists(folder / "interrupted") ? 1 : 0;
      return elastic::allreduce(here, elastic::ReduceOp::kMax) == 1;  // the same on all ranks
    };
    while (!interrupted()) {
      if (me == 2) ::raise(SIGKILL);
    }
    for (int i = 0; i < 20; ++i) {
      elastic::allreduce(ones);
      state.commit();
    }
  });
  std::ofstream(folder / "finished").close();
}

void interrupted_shutdown(const std::filesystem::path& folder) {
  elastic::barrier();
  if (elastic::rank() != 0) return wait_for(folder / "interrupted");
  interrupt([] { elastic::shutdown(); });
  std::ofstream(folder / "interrupted").close();
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) fail("usage: interrupted_ranks MODE FOLDER");
  const std::string mode = argv[1];
  try {
    elastic::init();
    if (mode == "small") interrupted_allreduce(2);
    if (mode == "large") interrupted_allreduce(1'000'000);
    if (mode == "named") interrupted_wait(argv[2]);
    if (mode == "shutdown") interrupted_shutdown(argv[2]);
    if (mode == "signals") interrupted_by_signals();
    if (mode == "turn") interrupted_turn(argv[2]);
    if (mode == "thrown") shutdown_with_named_operation();
    if (mode == "joiner") interrupted_joiner(argv[2]);
    if (mode == "beside_calls") shutdown_beside_calls();
    elastic::shutdown();
    return 0;
  } catch (const std::exception& error) {
    fail(std::string("error at the caller: ") + error.what());
  }
}
