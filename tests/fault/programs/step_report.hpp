#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <elastic/elastic.hpp>

namespace elastic::fault {

/// The outcome of one step, told in one line for the test to compare between workers:
///   step <index> <sums> <contributors> <generation> <microseconds> <state>
struct StepReport {
  std::uint64_t step = 0;
  std::string sums;  ///< or "error:<code>"
  std::size_t contributors = 0;
  std::uint64_t generation = 0;
  std::chrono::microseconds took{0};
  std::string state = "-";  ///< bits that have to be the same everywhere
};

void tell(const StepReport& report);

/// The code's name as the tests spell it, for example "root_lost".
const char* name(ErrorCode code);

/// Whether some worker has seen that the test asks for the end; the same on all of them.
bool agree_on_end(const std::string& file);

}  // namespace elastic::fault
