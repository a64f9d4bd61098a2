#include "fault/programs/step_report.hpp"

#include <filesystem>
#include <sstream>

#include "fault/programs/tell.hpp"

namespace elastic::fault {

void tell(const StepReport& report) {
  std::ostringstream line;
  line << "step " << report.step << ' ' << report.sums << ' ' << report.contributors << ' '
       << report.generation << ' ' << report.took.count() << ' ' << report.state;
  tell(line.str());
}

const char* name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kMismatch:
      return "mismatch";
    case ErrorCode::kNotInitialized:
      return "not_initialized";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kRefused:
      return "refused";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kRootLost:
      return "root_lost";
    case ErrorCode::kBelowMinimum:
      return "below_minimum";
    case ErrorCode::kEvicted:
      return "evicted";
    case ErrorCode::kRemoved:
      return "removed";
    case ErrorCode::kStopped:
      return "stopped";
    default:
      return "internal";
  }
}

bool agree_on_end(const std::string& file) {
  std::int64_t seen = std::filesystem::exists(file) ? 1 : 0;
  elastic::allreduce(std::span<std::int64_t>(&seen, 1));
  return seen > 0;
}

}  // namespace elastic::fault
