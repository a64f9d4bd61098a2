#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "nodes.hpp"
#include "sim_context.hpp"
#include "threads.hpp"

namespace elastic::simulation {

/// The life of a worker's process, which its parts share. While it is paused, none of its threads
/// runs. Once it is over, none runs any more until the run is over and the process is dismantled.
///
/// Its control thread does what events ask of it, in order, as the product's does what is posted to
/// it.
class Process {
 public:
  Process(Node self, SimContext& context)
      : self_(self), incarnation_(incarnation_of(self)), context_(context) {}

  Node self() const { return self_; }
  const std::string& incarnation() const { return incarnation_; }
  SimContext& context() const { return context_; }
  bool over() const { return over_; }
  bool asleep() const { return asleep_; }
  /// Whether its threads may run.
  bool runs() const { return dismantled_ || (!over_ && !asleep_); }

  /// Begins the control thread.
  void start() {
    control_ = &context_.threads.start(*this, "control", [this] { control(); });
  }
  const Thread& control_thread() const { return *control_; }

  /// `what` some time later, by the control thread.
  void later(Milliseconds least, Milliseconds most, std::function<void()> what) {
    context_.time.after(context_.chance.between(least, most),
                        [this, what = std::move(what)]() mutable { post(std::move(what)); });
  }
  /// Posts to the control thread.
  void post(std::function<void()> what) {
    if (over_) return;
    tasks_.push_back(std::move(what));
    context_.threads.wake_all(&tasks_);
  }

  void end() {
    over_ = true;
    tasks_.clear();
  }
  void sleep() { asleep_ = true; }
  void wake() {
    asleep_ = false;
    context_.threads.continue_threads(*this);
  }
  /// The run is over: the threads run to their end, and their actions have no effect.
  void dismantle() {
    over_ = true;
    dismantled_ = true;
    tasks_.clear();
    context_.threads.wake_all(&tasks_);
    context_.threads.continue_threads(*this);
  }

 private:
  void control() {
    while (!over_) {
      if (tasks_.empty()) {
        context_.threads.block(&tasks_, "for something to do");
        continue;
      }
      const std::function<void()> what = std::move(tasks_.front());
      tasks_.pop_front();
      what();
    }
  }

  const Node self_;
  const std::string incarnation_;
  SimContext& context_;
  Thread* control_ = nullptr;
  bool over_ = false;
  bool asleep_ = false;
  bool dismantled_ = false;
  std::deque<std::function<void()>> tasks_;
};

}  // namespace elastic::simulation
