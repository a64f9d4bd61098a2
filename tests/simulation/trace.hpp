#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include "virtual_time.hpp"

namespace elastic::simulation {

/// The events of a run, one a line, with time and process. Costs nothing if no trace is wanted.
class Trace {
 public:
  Trace(const VirtualTime& time, bool wanted) : time_(time), wanted_(wanted) {}

  /// `what` makes the text: text(...) or a callable that returns one.
  template <typename What>
  void line(const std::string& who, const What& what) {
    if (!wanted_) return;
    char when[32];
    const double ms = std::chrono::duration<double, std::milli>(time_.elapsed()).count();
    std::snprintf(when, sizeof(when), "%12.3f ms  ", ms);
    text_ += when + who + std::string(who.size() < 8 ? 8 - who.size() : 1, ' ') + what() + "\n";
  }

  const std::string& text() const { return text_; }

 private:
  const VirtualTime& time_;
  const bool wanted_;
  std::string text_;
};

}  // namespace elastic::simulation
