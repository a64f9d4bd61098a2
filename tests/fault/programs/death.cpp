#include "fault/programs/death.hpp"

#include <signal.h>
#include <string_view>
#include <unistd.h>

namespace elastic::fault {

namespace {

constexpr std::string_view kReturn = "return+";

}  // namespace

Death::Death(const std::string& when) : wanted_(!when.empty()) {
  if (!wanted_) return;
  std::size_t colon = 0;
  step_ = std::stoull(when, &colon);
  std::string delay = when.substr(colon + 1);
  if (delay.starts_with(kReturn)) {
    from_ = From::kReturn;
    delay.erase(0, kReturn.size());
  }
  delay_ = std::chrono::microseconds(std::stoll(delay));
  thread_ = std::thread([this] { watch(); });
}

Death::~Death() {
  if (wanted_) ::kill(::getpid(), SIGKILL);
}

void Death::passes(std::uint64_t step, From from) {
  if (!wanted_ || step != step_ || from != from_) return;
  // No hand-over to another thread where the very moment is wanted.
  if (delay_ == std::chrono::microseconds(0)) ::kill(::getpid(), SIGKILL);
  lit_at_ = std::chrono::steady_clock::now();
  lit_.store(true);
  lit_.notify_one();
}

void Death::watch() {
  lit_.wait(false);
  while (std::chrono::steady_clock::now() - lit_at_ < delay_) continue;
  ::kill(::getpid(), SIGKILL);
}

}  // namespace elastic::fault
