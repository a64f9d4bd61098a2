// Trains a small network on handwritten digits, with workers that may come and go at any moment:
//
//   elasticrun -np 4 ./train_digits --data examples/data/digits.csv.gz
//
// Each worker ends with one line of JSON.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

#include "examples/command_line.hpp"
#include "examples/digits/cuda/cuda_model.hpp"
#include "examples/digits/feed.hpp"
#include "examples/digits/host_model.hpp"
#include "examples/digits/report.hpp"
#include "examples/digits/self_destruct.hpp"
#include "examples/digits/trainer.hpp"

namespace {

struct CommandLine {
  digits::TrainerOptions trainer;
  digits::ModelOptions model;
  std::string device = "host";
  std::string data = ELASTIC_DIGITS_CSV;
  std::string trace;
  std::string report;
  std::string schedule = "step";
  std::string rule = "linear";
  std::string policy;  // empty: as the library's options say
  std::string batch_policy = "per_worker";
  std::string compression;  // empty: as the library's options say
  std::string weights;
  std::string checkpoint;
  std::int64_t checkpoint_every = 100;
  bool data_only = false;
  unsigned step_ms = 0;
  int die_rank = -1;
  std::int64_t die_at_step = 0;
};

void describe_rate(CLI::App& app, CommandLine& line) {
  app.add_option("--lr", line.trainer.rate, "learning rate for a batch of --batch samples")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--schedule", line.schedule, "how it goes over the training")
      ->check(examples::one_of(digits::kSchedules))
      ->capture_default_str();
  app.add_option("--warmup", line.trainer.warm_up, "epochs of gradual warm-up at the start")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--rule", line.rule, "how it follows the number of workers")
      ->check(examples::one_of(elastic::kScalingRules))
      ->capture_default_str();
  app.add_option("--policy", line.policy,
                 "what becomes of it when workers come or go; default: ELASTIC_RESIZE_POLICY")
      ->check(examples::one_of(elastic::kResizePolicies));
  app.add_option("--ramp-steps", line.trainer.ramp_steps,
                 "steps of a ramp; default: 8 times the growth, and at least 3 / (1 - momentum)")
      ->check(CLI::Range(1, 1000000000));
}

void describe_batch(CLI::App& app, CommandLine& line) {
  app.add_option("--batch", line.trainer.batch.batch,
                 "samples per step: of each worker, or in all, as the policy says")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option(
         "--batch-policy", line.batch_policy,
         "per_worker: a batch for each; fixed_total: one batch, distributed to virtual workers; "
         "reproducible: likewise, with the same bits whoever the workers are")
      ->check(examples::one_of(elastic::kBatchPolicies))
      ->capture_default_str();
  app.add_option("--virtual-workers", line.trainer.batch.virtual_workers,
                 "parts of a batch that is fixed_total or reproducible")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
}

void describe(CLI::App& app, CommandLine& line) {
  app.add_option("--device", line.device,
                 "where the network computes: host, or cuda, where workers of one host take its "
                 "devices in turn; the same for all workers")
      ->check(CLI::IsMember({"host", "cuda"}))
      ->capture_default_str();
  app.add_option("--epochs", line.trainer.epochs,
                 "passes over the data; with --rule adascale what the training is to be worth")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  describe_batch(app, line);
  describe_rate(app, line);
  app.add_option("--momentum", line.model.momentum, "share of the last update that is kept")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--compression", line.compression,
                 "of gradients: none, f16, bf16, int8, two_bit:THRESHOLD or top_k:RATIO; default: "
                 "ELASTIC_COMPRESSION")
      ->check([](const std::string& text) {
        return elastic::find_compression(text)
                   ? std::string()
                   : "must be " + std::string(elastic::kCompressionForms);
      });
  app.add_option("--seed", line.trainer.seed, "of the first weights and of the order of samples")
      ->capture_default_str();
  app.add_option("--data", line.data, "the digits, as CSV")->capture_default_str();
  app.add_option("--trace", line.trace, "folder for a line of JSON per step, trace-<pid>.jsonl");
  app.add_option("--report", line.report, "folder for report-<pid>.json; default: print it");
  app.add_option("--weights", line.weights,
                 "file for the weights in the end, as f32 one after another: from rank 0");
  app.add_option("--checkpoint", line.checkpoint,
                 "file that the training is saved to, and goes on from where there is one");
  app.add_option("--checkpoint-every", line.checkpoint_every, "steps from one save to the next")
      ->check(CLI::Range(1, 1000000000))
      ->capture_default_str();
  app.add_flag("--data-only", line.data_only, "measure how fast samples come; no job, no training");
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

/// Saves on the present rank 0. If it fails, the old checkpoint stays and the training goes on.
void save(digits::Trainer& trainer, const CommandLine& line) {
  if (line.checkpoint.empty() || elastic::rank() != 0) return;
  try {
    trainer.state().save_to(line.checkpoint);
  } catch (const elastic::Error& error) {
    std::fprintf(stderr, "no checkpoint of step %lld: %s\n",
                 static_cast<long long>(trainer.steps()), error.what());
  }
}

/// Goes on from the checkpoint, where there is one.
void resume(digits::Trainer& trainer, const std::string& checkpoint) {
  if (checkpoint.empty()) return;
  const auto options_without_effect = trainer.load_from(checkpoint);
  if (!options_without_effect) return;
  std::fprintf(stderr, "begins with step %lld of %s, or with the job's own if it runs\n",
               static_cast<long long>(trainer.steps()), checkpoint.c_str());
  if (elastic::rank() != 0) return;
  for (const std::string& line : *options_without_effect) {
    std::fprintf(stderr, "warning: %s\n", line.c_str());
  }
}

/// The launcher's number of this worker on its host, which it keeps. elastic::local_rank() follows
/// the members, so two workers might choose one device at different times.
int number_on_host() {
  for (const char* const name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    if (const char* const number = std::getenv(name)) return std::atoi(number);
  }
  return elastic::local_rank();
}

std::unique_ptr<digits::Model> make_model(const digits::ModelOptions& options,
                                          const digits::Dataset& data, int devices) {
  if (devices == 0) return std::make_unique<digits::HostModel>(options, data.training);
  return digits::make_cuda_model(options, data.training, number_on_host() % devices);
}

digits::TrainerOptions trainer_options(const CommandLine& line) {
  digits::TrainerOptions options = line.trainer;
  options.momentum = line.model.momentum;
  options.least_step = std::chrono::milliseconds(line.step_ms);
  options.schedule = *elastic::find_named(digits::kSchedules, line.schedule);
  options.rule = *elastic::find_named(elastic::kScalingRules, line.rule);
  options.policy =
      elastic::find_named(elastic::kResizePolicies, line.policy).value_or(elastic::resize_policy());
  options.batch.policy = *elastic::find_named(elastic::kBatchPolicies, line.batch_policy);
  options.compression =
      elastic::find_compression(line.compression).value_or(elastic::compression());
  return options;
}

void train(const CommandLine& line) {
  const digits::Dataset data = digits::split(digits::read_samples(line.data));
  if (line.data_only) {
    const digits::TrainerOptions& of = line.trainer;
    const std::string feed = digits::measure_feed(data, of.epochs, of.batch.batch, of.seed);
    return digits::write_report(line.report, feed);
  }
  const int devices = line.device == "cuda" ? digits::cuda_devices() : 0;
  std::optional<digits::Trace> trace;
  if (!line.trace.empty()) trace.emplace(line.trace);

  elastic::init();
  digits::ModelOptions of_model = line.model;
  of_model.seed = line.trainer.seed;
  digits::Trainer trainer(trainer_options(line), data, make_model(of_model, data, devices));
  trainer.on_epoch = [&] { log_epoch(trainer); };
  const digits::SelfDestruct bomb(line.die_rank, line.die_at_step,
                                  line.trace.empty() ? "." : line.trace);
  trainer.before_allreduce = [&](std::int64_t step) { bomb.before_allreduce(step); };
  if (trace) {
    trainer.on_step = [&](const digits::StepInfo& info) { trace->add(info, trainer.weights()); };
  }
  trainer.after_commit = [&] {
    if (trainer.steps() % line.checkpoint_every == 0 || trainer.finished()) save(trainer, line);
  };
  resume(trainer, line.checkpoint);
  const elastic::RunOutcome outcome = trainer.train();
  if (outcome == elastic::RunOutcome::kStopped) save(trainer, line);
  // A worker that was removed while it was rank 0 still has that rank.
  if (outcome == elastic::RunOutcome::kFinished && elastic::rank() == 0) {
    digits::write_weights(line.weights, trainer.weights());
  }
  digits::write_report(line.report, digits::report_line(trainer, outcome, elastic::rank()));
  elastic::shutdown();
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line;
  CLI::App app("Trains a small network on handwritten digits, elastically.");
  describe(app, line);
  return examples::run_program(app, argc, argv, [&] { train(line); });
}
