// elastic-simulate: runs simulated jobs under faults and checks what must hold; see
// docs/simulation.md.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/log.hpp"
#include "campaign.hpp"
#include "world.hpp"

namespace elastic::simulation {
namespace {

/// Limits of the output: failed seeds, and lines of each.
constexpr std::size_t kShown = 10;
constexpr std::size_t kLinesShown = 3;

struct Command {
  Campaign campaign;
  bool trace = false;
  bool json = false;
};

std::string first_lines(const std::string& text) {
  std::size_t end = 0;
  for (std::size_t line = 0; line < kLinesShown && end < text.size(); ++line) {
    end = text.find('\n', end) + 1;
  }
  return "    " + text.substr(0, end);
}

/// The most and the mean, for events upon which the server sends something.
void print_costs(const Costs& costs) {
  std::printf("for each event, the server sends%17s%13s%13s\n", "messages", "bytes", "most bytes");
  for (std::size_t i = 0; i < Costs::kClasses.size(); ++i) {
    const Costs::Class& its = costs.classes()[i];
    if (its.answered == 0) continue;
    const auto events = static_cast<double>(its.answered);
    std::printf(
        "  up to %3zu workers %8llu events %8.1f, at most %3llu %9.0f %12llu\n", Costs::kClasses[i],
        static_cast<unsigned long long>(its.answered), static_cast<double>(its.messages) / events,
        static_cast<unsigned long long>(its.most_messages), static_cast<double>(its.bytes) / events,
        static_cast<unsigned long long>(its.most_bytes));
  }
}

nlohmann::json costs_json(const Costs& costs) {
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < Costs::kClasses.size(); ++i) {
    const Costs::Class& its = costs.classes()[i];
    all.push_back({{"most_workers", Costs::kClasses[i]},
                   {"events", its.events},
                   {"answered", its.answered},
                   {"messages", its.messages},
                   {"most_messages", its.most_messages},
                   {"bytes", its.bytes},
                   {"most_bytes", its.most_bytes}});
  }
  return all;
}

std::string replay(const Command& command, std::uint64_t seed) {
  std::string text = "./run simulate --seed " + std::to_string(seed) + " --seeds 1 --trace";
  if (command.campaign.large) text += " --large";
  if (command.campaign.mutation == Mutation::kNone) return text;
  return text + " --mutation " + std::string(name(command.campaign.mutation));
}

void print(const std::string& what, std::uint64_t number) {
  std::printf("  %-24s %12llu\n", what.c_str(), static_cast<unsigned long long>(number));
}

void report(const Command& command, const Findings& findings, double seconds) {
  const Tally& tally = findings.tally;
  print("runs", tally.runs);
  print("with over 64 workers", tally.large_runs);
  print("views decided", tally.views);
  print("operations completed", tally.operations);
  print("restarts of the server", tally.restarts);
  print("evicted, joined again", tally.rejoins);
  print("left after a timeout", tally.timeouts);
  print("calls that came too late", tally.late_calls);
  print("named mismatches", tally.named_mismatches);
  print("steps summed again", tally.summed_again);
  print("calls of groups", tally.group_calls);
  print("returns from join", tally.joins);
  print("run called again", tally.run_again);
  print("links made when needed", tally.later_links);
  print("links not made in time", tally.later_links_failed);
  print("jobs that had to end", tally.failed_jobs);
  for (std::size_t i = 0; i < kEarlyEnds.size(); ++i) {
    print(std::string("ended early: ") + kEarlyEnds[i], tally.early_ends[i]);
  }
  for (std::size_t i = 0; i < kFaults; ++i) {
    print(std::string(name(static_cast<Fault>(i))), tally.faults[i]);
  }
  print_costs(tally.decisions);
  print("violations", findings.failures.size());
  std::printf("  %-24s %12.1f s\n", "time", seconds);
  for (std::size_t i = 0; i < findings.failures.size() && i < kShown; ++i) {
    const Findings::Failure& failure = findings.failures[i];
    std::printf("seed %llu:\n%s    replay: %s\n", static_cast<unsigned long long>(failure.seed),
                first_lines(failure.wrong).c_str(), replay(command, failure.seed).c_str());
  }
  if (findings.failures.size() > kShown) {
    std::printf("seeds that failed:");
    for (const auto& failure : findings.failures) {
      std::printf(" %llu", static_cast<unsigned long long>(failure.seed));
    }
    std::printf("\n");
  }
}

void report_json(const Command& command, const Findings& findings, double seconds) {
  const Tally& tally = findings.tally;
  nlohmann::json faults;
  for (std::size_t i = 0; i < kFaults; ++i) {
    faults[std::string(name(static_cast<Fault>(i)))] = tally.faults[i];
  }
  nlohmann::json early_ends;
  for (std::size_t i = 0; i < kEarlyEnds.size(); ++i)
    early_ends[kEarlyEnds[i]] = tally.early_ends[i];
  nlohmann::json failed = nlohmann::json::array();
  for (const auto& failure : findings.failures) {
    failed.push_back({{"seed", failure.seed}, {"wrong", failure.wrong}});
  }
  const nlohmann::json all{{"first_seed", command.campaign.first_seed},
                           {"mutation", name(command.campaign.mutation)},
                           {"runs", tally.runs},
                           {"large_runs", tally.large_runs},
                           {"views", tally.views},
                           {"operations", tally.operations},
                           {"restarts", tally.restarts},
                           {"rejoins", tally.rejoins},
                           {"timeouts", tally.timeouts},
                           {"late_calls", tally.late_calls},
                           {"named_mismatches", tally.named_mismatches},
                           {"summed_again", tally.summed_again},
                           {"group_calls", tally.group_calls},
                           {"joins", tally.joins},
                           {"run_again", tally.run_again},
                           {"failed_jobs", tally.failed_jobs},
                           {"later_links", tally.later_links},
                           {"later_links_failed", tally.later_links_failed},
                           {"early_ends", early_ends},
                           {"faults", faults},
                           {"decisions", costs_json(tally.decisions)},
                           {"failures", failed},
                           {"seconds", seconds}};
  std::printf("%s\n", all.dump().c_str());
}

/// One seed, with all that happened.
int show(const Command& command) {
  const Campaign& campaign = command.campaign;
  World world(Scenario(campaign.first_seed, campaign.mutation, campaign.large), true);
  const std::string wrong = world.run();
  std::printf("%s%s%s", world.trace().c_str(), wrong.empty() ? "" : "wrong:\n", wrong.c_str());
  std::printf("%d passed, %d failed\n", wrong.empty() ? 1 : 0, wrong.empty() ? 0 : 1);
  return wrong.empty() ? 0 : 1;
}

int simulate(const Command& command) {
  if (command.trace) return show(command);
  const auto start = std::chrono::steady_clock::now();
  const Findings findings = run(command.campaign);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  command.json ? report_json(command, findings, taken.count())
               : report(command, findings, taken.count());
  const std::size_t failed = findings.failures.size();
  if (!command.json) {
    std::printf("%llu passed, %zu failed\n",
                static_cast<unsigned long long>(findings.tally.runs - failed), failed);
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace elastic::simulation

int main(int argc, char** argv) try {
  using namespace elastic::simulation;
  Command command;
  Campaign& campaign = command.campaign;
  campaign.jobs = std::max(1U, std::thread::hardware_concurrency());
  std::map<std::string, Mutation> mutations;
  for (const Mutation each : kMutations) mutations[std::string(name(each))] = each;
  std::string mutation(name(campaign.mutation));

  CLI::App app("Runs simulated jobs under faults and checks what must hold.", "elastic-simulate");
  app.add_option("--seeds", campaign.seeds, "how many runs")->capture_default_str();
  app.add_option("--seed", campaign.first_seed, "of the first one")->capture_default_str();
  app.add_flag("--large", campaign.large, "all runs begin with 32 to 256 workers");
  app.add_option("--jobs", campaign.jobs, "threads")->check(CLI::PositiveNumber);
  app.add_option("--mutation", mutation, "break something, to see it noticed")
      ->check(CLI::IsMember(mutations));
  app.add_flag("--trace", command.trace, "run the first seed alone and show what happens");
  app.add_flag("--json", command.json, "for programs");
  CLI11_PARSE(app, argc, argv);
  campaign.mutation = mutations.at(mutation);
  elastic::log::set_level(command.trace ? elastic::LogLevel::kWarn : elastic::LogLevel::kOff);
  return simulate(command);
} catch (const std::exception& error) {
  std::fprintf(stderr, "elastic-simulate: %s\n", error.what());
  return 2;
}
