// Ranks of which rank 0 waits for the others, which come only after its InterruptCheck has ended
// the wait. The mode says what it waits in: "small" or "large" (an allreduce), "named"
// (Work::wait), or "shutdown". The second argument is a folder for files that tell what has
// happened.
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/interrupt.hpp>

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
    elastic::shutdown();
    return 0;
  } catch (const std::exception& error) {
    fail(std::string("error at the caller: ") + error.what());
  }
}
