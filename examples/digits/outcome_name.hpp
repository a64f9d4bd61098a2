#pragma once

#include <elastic/elastic.hpp>

namespace digits {

inline const char* name_of(elastic::RunOutcome outcome) {
  switch (outcome) {
    case elastic::RunOutcome::kFinished:
      return "finished";
    case elastic::RunOutcome::kRemoved:
      return "removed";
    case elastic::RunOutcome::kStopped:
      return "stopped";
    case elastic::RunOutcome::kLeftOut:
      return "left out";
  }
  return "unknown";
}

}  // namespace digits
