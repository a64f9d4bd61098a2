// Trains a small network on handwritten digits, with workers that may come and go at any moment:
//
//   elasticrun -np 4 ./train_digits --data examples/data/digits.csv.gz
//
// Each worker ends with one line of JSON.
#include <cstdio>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <elastic/elastic.hpp>

#include "examples/digits/report.hpp"
#include "examples/digits/self_destruct.hpp"
#include "examples/digits/trainer.hpp"

namespace {

struct CommandLine {
  digits::TrainerOptions trainer;
  std::string data = ELASTIC_DIGITS_CSV;
  std::string trace;
  std::string report;
  unsigned step_ms = 0;
  int die_rank = -1;
  std::int64_t die_at_step = 0;
};

void describe(CLI::App& app, CommandLine& line) {
  app.add_option("--epochs", line.trainer.epochs, "passes over the data")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--batch", line.trainer.batch, "samples per worker and step")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--lr", line.trainer.rate, "learning rate for the batch of one worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--momentum", line.trainer.momentum, "share of the last update that is kept")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--seed", line.trainer.seed, "of the first weights and of the order of samples")
      ->capture_default_str();
  app.add_option("--data", line.data, "the digits, as CSV")->capture_default_str();
  app.add_option("--trace", line.trace, "folder for a line of JSON per step, trace-<pid>.jsonl");
  app.add_option("--report", line.report, "folder for report-<pid>.json; default: print it");
  app.add_option("--die-rank", line.die_rank, "for demos: this rank kills itself with SIGKILL")
      ->capture_default_str();
  app.add_option("--die-at-step", line.die_at_step, "... in the middle of this step's allreduce")
      ->capture_default_str();
  app.add_option("--step-ms", line.step_ms, "draw shorter steps out to this, to be watched")
      ->capture_default_str();
}

void log_epoch(const digits::Trainer& trainer) {
  if (elastic::rank() != 0) return;
  const digits::Usage& usage = trainer.usage();
  std::fprintf(stderr, "epoch %lld: %d workers, step %lld, loss %.4f, test accuracy %.4f\n",
               static_cast<long long>(usage.epochs), elastic::size(),
               static_cast<long long>(trainer.steps()), trainer.epoch_loss(),
               digits::accuracy(trainer.weights(), trainer.test_samples()));
}

void train(const CommandLine& line) {
  digits::Dataset data = digits::split(digits::read_samples(line.data));
  digits::TrainerOptions options = line.trainer;
  options.least_step = std::chrono::milliseconds(line.step_ms);
  std::optional<digits::Trace> trace;
  if (!line.trace.empty()) trace.emplace(line.trace);

  elastic::init();
  digits::Trainer trainer(options, std::move(data));
  trainer.on_epoch = [&] { log_epoch(trainer); };
  const digits::SelfDestruct bomb(line.die_rank, line.die_at_step,
                                  line.trace.empty() ? "." : line.trace);
  trainer.before_allreduce = [&](std::int64_t step) { bomb.before_allreduce(step); };
  if (trace) {
    trainer.on_step = [&](const digits::StepInfo& info) { trace->add(info, trainer.weights()); };
  }
  const elastic::RunOutcome outcome = trainer.train();
  digits::write_report(line.report, digits::report_line(trainer, outcome, elastic::rank()));
  elastic::shutdown();
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line;
  CLI::App app("Trains a small network on handwritten digits, elastically.");
  describe(app, line);
  CLI11_PARSE(app, argc, argv);
  try {
    train(line);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_digits: %s\n", error.what());
    return 1;
  }
}
