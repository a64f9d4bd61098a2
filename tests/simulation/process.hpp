#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "around.hpp"
#include "nodes.hpp"

namespace elastic::simulation {

/// The life of a worker's process, which its parts share: while it stands still nothing happens in
/// it, and what came meanwhile happens when it wakes up; once it is over nothing happens any more.
class Process {
 public:
  Process(Node self, Around& around)
      : self_(self), incarnation_(incarnation_of(self)), around_(around) {}

  Node self() const { return self_; }
  const std::string& incarnation() const { return incarnation_; }
  Around& around() const { return around_; }
  bool over() const { return over_; }
  bool asleep() const { return asleep_; }

  /// `what` some time later.
  void later(Milliseconds least, Milliseconds most, std::function<void()> what) {
    around_.time.after(around_.chance.between(least, most),
                       [this, what = std::move(what)] { when_awake(what); });
  }
  /// As one thread posts to another.
  void post(std::function<void()> what) {
    later(Milliseconds(0), Milliseconds(0), std::move(what));
  }
  void when_awake(const std::function<void()>& what) {
    if (over_) return;
    if (asleep_) {
      missed_.push_back(what);
    } else {
      what();
    }
  }

  void end() { over_ = true; }
  void sleep() { asleep_ = true; }
  void wake() {
    asleep_ = false;
    for (const auto& what : std::exchange(missed_, {})) when_awake(what);
  }

 private:
  const Node self_;
  const std::string incarnation_;
  Around& around_;
  bool over_ = false;
  bool asleep_ = false;
  std::vector<std::function<void()>> missed_;
};

}  // namespace elastic::simulation
