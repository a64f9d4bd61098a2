#include "fault/programs/training.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

#include "examples/digits/outcome_name.hpp"
#include "fault/programs/digits.hpp"
#include "fault/programs/learning_rate_options.hpp"
#include "fault/programs/step_report.hpp"
#include "fault/programs/tell.hpp"

namespace elastic::fault {

namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

std::string hex(std::uint64_t bits) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(bits));
  return text;
}

/// The constant value of a weight that is not trained.
double pattern(std::size_t index) {
  return static_cast<double>(index) * 0.5;
}

}  // namespace

std::vector<std::byte> Witness::save() const {
  tell(joiner_ ? "saves as joiner" : "saves");
  return {std::byte{42}};
}

void Witness::load(std::span<const std::byte> /*bytes*/) {
  tell("loads");
  if (die_loading_) ::kill(::getpid(), SIGKILL);
  joiner_ = false;
}

Training::Training(const Arguments& arguments, int slot)
    : arguments_(arguments),
      slot_(slot),
      death_(arguments.die),
      joiner_(elastic::rank() < 0),
      weights_(std::max(kTrained, arguments.state_bytes / sizeof(double))),
      learning_rate_(learning_rate_options(elastic::resize_policy())),
      witness_(joiner_, arguments.die_loading) {
  for (std::size_t i = 0; i < weights_.size() && !joiner_; ++i) weights_[i] = pattern(i);
  state_.add("weights", weights_);
  state_.add("steps", steps_);
  state_.add("learning rate", learning_rate_);
  state_.add("witness", witness_);
}

void Training::run() {
  const RunOutcome outcome = elastic::run(state_, [this] { body(); });
  check_untrained();
  tell(std::string("outcome ") + digits::name_of(outcome));
}

void Training::body() {
  check_untrained();
  tell("entered " + std::to_string(steps_));
  bool end = false;
  while (!end) {
    step();
    end = arguments_.until.empty() ? steps_ >= arguments_.steps : agree_on_end(arguments_.until);
    state_.commit();
    if (state_.commits() != steps_) throw std::logic_error("commits are not the steps");
  }
}

void Training::step() {
  std::vector<std::int64_t> gradient(arguments_.elements, digit(slot_));
  StepReport report;
  report.step = steps_;
  const auto begin = steady_clock::now();
  death_.enters(steps_);
  const Contributors who = elastic::allreduce(std::span<std::int64_t>(gradient));
  death_.returns(steps_);
  for (const std::int64_t sum : gradient) check_digits(sum, who.size(), slot_);

  const double batch = kBatchPerWorker * static_cast<double>(who.size());
  const double rate = learning_rate_.step(batch, batch).value();
  for (std::size_t i = 0; i < kTrained; ++i) {
    weights_[i] -= rate * 1e-20 * static_cast<double>(gradient[i % gradient.size()]);
  }
  ++steps_;
  // Tests set the length of a step, so that faults come in the middle of many.
  if (arguments_.pause_us > 0) std::this_thread::sleep_for(microseconds(arguments_.pause_us));
  report.sums = std::to_string(gradient.front());
  report.contributors = who.size();
  report.generation = who.generation();
  report.took = duration_cast<microseconds>(steady_clock::now() - begin);
  report.state = hex(std::bit_cast<std::uint64_t>(rate)) + "/" + hex(hash());
  tell(report);
}

/// FNV-1a of what is trained.
std::uint64_t Training::hash() const {
  std::uint64_t result = 14695981039346656037U;
  for (std::size_t i = 0; i < kTrained; ++i) {
    result = (result ^ std::bit_cast<std::uint64_t>(weights_[i])) * 1099511628211U;
  }
  return result;
}

void Training::check_untrained() const {
  for (std::size_t i = kTrained; i < weights_.size(); ++i) {
    if (weights_[i] != pattern(i)) throw std::logic_error("state differs at " + std::to_string(i));
  }
}

}  // namespace elastic::fault
