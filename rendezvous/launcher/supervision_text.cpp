#include "rendezvous/launcher/supervision_text.hpp"

#include <algorithm>
#include <charconv>
#include <string.h>

namespace elastic::launcher {

std::string worker(int slot) {
  return "worker " + std::to_string(slot);
}

std::string signal_name(int number) {
  const char* abbreviated = ::sigabbrev_np(number);
  return abbreviated != nullptr ? std::string("SIG") + abbreviated
                                : "signal " + std::to_string(number);
}

std::string seconds(Milliseconds time) {
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof text, static_cast<double>(time.count()) / 1000).ptr;
  return std::string(text, end) + " s";
}

std::string because(const std::string& why) {
  return why.empty() ? "" : ": " + why;
}

std::string fewer_workers(int began, int finished, const std::vector<std::string>& missing) {
  constexpr std::size_t kMostNamed = 8;
  if (finished >= began) return "";
  std::string outcomes;
  for (std::size_t at = 0; at < std::min(missing.size(), kMostNamed); ++at) {
    outcomes += (at == 0 ? ": " : "; ") + missing[at];
  }
  if (missing.size() > kMostNamed) {
    outcomes += "; and " + std::to_string(missing.size() - kMostNamed) + " more";
  }
  return "the job began with " + std::to_string(began) + " workers and ended with " +
         std::to_string(finished) + outcomes;
}

bool left_before_end(const WorkerReport& report) {
  using Left = WorkerReport::Left;
  return report.left == Left::kUnable || report.left == Left::kEvicted ||
         report.left == Left::kLost;
}

}  // namespace elastic::launcher
