// The cost of the rendezvous server's decisions in jobs of different sizes, without its sockets:
//
//   membership_bench --benchmark_filter=heartbeat
//
// The items are events: a heartbeat, a registration, a Ready, a report. Names and addresses are as
// long as those of real workers.
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <benchmark/benchmark.h>

#include "rendezvous/membership/membership.hpp"

namespace elastic::rendezvous {
namespace {

/// A job whose workers have registered.
class Workers {
 public:
  explicit Workers(std::size_t count) : membership_(options(count)) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string number = std::to_string(10000000 + i);
      names_.push_back(number + number + number + number);
    }
    for (std::size_t i = 0; i < count; ++i) decide(Registered{registration(i)});
  }

  Decision decide(const Event& event) {
    Decision decision = membership_.decide(event, now_);
    for (const Action& action : decision.actions) {
      const auto* sent = std::get_if<SendTo>(&action);
      const auto* freeze = sent == nullptr ? nullptr : std::get_if<Freeze>(&sent->message);
      if (freeze != nullptr) freeze_ = *freeze;
    }
    return decision;
  }
  void be_ready() {
    for (const std::string& name : names_) decide(Received{name, Ready{}});
  }
  void report_all() {
    const Report report{freeze_.generation, freeze_.round, {{5, ""}, {0, ""}}, 1, true, false};
    for (const std::string& name : names_) decide(Received{name, report});
  }

  const std::vector<std::string>& names() const { return names_; }
  const View& view() const { return membership_.view(); }
  void lose_last() {
    decide(ProcessEnded{names_.back(), "its process has ended"});
    decide(ConnectionLost{names_.back(), "connection closed"});
    names_.pop_back();
  }
  void pass(Duration time) { now_ += time; }

 private:
  static MembershipOptions options(std::size_t count) {
    MembershipOptions options;
    options.initial_np = static_cast<int>(count);
    return options;
  }
  Register registration(std::size_t index) const {
    Register its;
    its.incarnation = names_[index];
    its.pid = 10000;
    its.label = "slot-" + std::to_string(index);
    its.order = static_cast<std::int64_t>(index);
    its.endpoints.host = "ip-10-0-0-" + std::to_string(index / 8) +
                         ".ec2.internal/3f1c9a52-1f0b-4c7c-9f6a-0d8f5d2b7c11/net:[4026531992]/1000";
    its.endpoints.tcp = {"10.0.0.1:41234", "172.17.0.1:41234", "127.0.0.1:41234"};
    its.endpoints.local = "elastic-" + names_[index];
    return its;
  }

  Membership membership_;
  TimePoint now_{std::chrono::hours(1)};
  std::vector<std::string> names_;
  Freeze freeze_;
};

std::size_t size_of(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0));
}
void count_events(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void heartbeats(benchmark::State& state) {
  Workers workers(size_of(state));
  workers.be_ready();
  Heartbeat heartbeat{workers.view().generation, {0, 0}};
  for (auto _ : state) {  // NOLINT(*-unused-variable)
    ++heartbeat.positions[0];
    for (const std::string& name : workers.names()) {
      workers.pass(Milliseconds(50) / state.range(0));
      workers.decide(Received{name, heartbeat});
    }
  }
  count_events(state);
}
void registrations(benchmark::State& state) {
  for (auto _ : state) Workers workers(size_of(state));  // NOLINT(*-unused-variable)
  count_events(state);
}
void readies(benchmark::State& state) {
  for (auto _ : state) {  // NOLINT(*-unused-variable)
    state.PauseTiming();
    Workers workers(size_of(state));
    state.ResumeTiming();
    workers.be_ready();
  }
  count_events(state);
}
/// From a death to the next view.
void reports(benchmark::State& state) {
  for (auto _ : state) {  // NOLINT(*-unused-variable)
    state.PauseTiming();
    Workers workers(size_of(state));
    workers.be_ready();
    state.ResumeTiming();
    workers.lose_last();
    workers.report_all();
    if (workers.view().generation != 2) state.SkipWithError("no second view");
  }
  count_events(state);
}

BENCHMARK(heartbeats)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK(registrations)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK(readies)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK(reports)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace elastic::rendezvous

BENCHMARK_MAIN();
