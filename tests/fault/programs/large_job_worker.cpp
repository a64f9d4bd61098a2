// A worker of a job with many others: makes steps until the file END exists, proves every sum by
// itself, and tells line by line on standard output:
//   pid <process>
//   entered <step>            the training is entered
//   step ...                  see StepReport; the sums are the slots counted, see check_flags
//   end                       after shutdown
//   failed <what>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

#include "fault/programs/flags.hpp"
#include "fault/programs/step_report.hpp"
#include "fault/programs/tell.hpp"
#include "integration/programs/result_hash.hpp"

namespace {

using namespace elastic;

/// Few, as the number of workers is what is tested.
constexpr std::size_t kElements = fault::kFlags * 8;

class LargeJobWorker {
 public:
  LargeJobWorker(int slot, std::string end) : slot_(slot), end_(std::move(end)) {
    state_.add("steps", steps_);
    state_.add("totals", totals_);
  }

  void run() {
    elastic::run(state_, [this] {
      fault::tell("entered " + std::to_string(steps_));
      for (bool ends = false; !ends;) {
        step();
        ends = fault::agree_on_end(end_);
        state_.commit();
      }
    });
  }

 private:
  void step() {
    std::vector<std::int32_t> tensor(kElements);
    fault::set_flags(tensor, slot_);
    fault::StepReport report;
    const Contributors who = elastic::allreduce(std::span<std::int32_t>(tensor));
    report.step = steps_++;
    report.sums = fault::check_flags(tensor, who.size(), slot_);
    report.contributors = who.size();
    report.generation = who.generation();
    for (std::size_t i = 0; i < totals_.size(); ++i) totals_[i] += tensor[i];
    testing::ResultHash hash;
    hash.add(totals_);
    report.state = std::to_string(hash.value());
    fault::tell(report);
  }

  const int slot_;
  const std::string end_;
  std::uint64_t steps_ = 0;
  std::vector<std::int32_t> totals_ = std::vector<std::int32_t>(fault::kFlags);
  State state_;
};

}  // namespace

int main(int argc, char** argv) {
  const char* slot = std::getenv("ELASTIC_SLOT");
  if (argc != 2 || slot == nullptr) {
    fault::tell("failed usage: large_job_worker END, as a worker");
    return 2;
  }
  try {
    fault::tell("pid " + std::to_string(::getpid()));
    elastic::init();
    LargeJobWorker(std::atoi(slot), argv[1]).run();
    elastic::shutdown();
    fault::tell("end");
    return 0;
  } catch (const std::exception& error) {
    fault::tell(std::string("failed ") + error.what());
    return 3;
  }
}
