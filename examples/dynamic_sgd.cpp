// Trains the digits with one worker, then with many, then with few again, and writes how well the
// network does after every step:
//
//   ./dynamic_sgd --workers 8 --policy immediate
//
// With all workers in this process, or, by the same arithmetic, as one worker of a real job:
//
//   elasticrun -np 1 --min-np 1 --max-np 8 --max-restarts 0 ./dynamic_sgd --elastic --out
//   steps.jsonl elasticrun ctl add 7     # when it says that it waits for them
//
// `./run bench dynamic-sgd` does it for many and compares them.
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <elastic/elastic.hpp>

#include "examples/command_line.hpp"
#include "examples/dynamic_sgd/elastic_job.hpp"
#include "examples/dynamic_sgd/held_out.hpp"
#include "examples/dynamic_sgd/record.hpp"
#include "examples/dynamic_sgd/simulated_job.hpp"

namespace {

struct CommandLine {
  dynamic_sgd::Plan plan;
  dynamic_sgd::LearnerOptions learner;
  std::string policy = "ramp";
  std::string data = ELASTIC_DIGITS_CSV;
  std::string out;
  bool elastic = false;
};

void describe_plan(CLI::App& app, dynamic_sgd::Plan& plan) {
  app.add_option("--epochs", plan.epochs, "passes over the data")->capture_default_str();
  app.add_option("--workers", plan.workers, "after the growth; 1: there is none")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--grow-at", plan.grow_at, "first epoch of all workers, from 0")
      ->capture_default_str();
  app.add_option("--shrink-at", plan.shrink_at, "first epoch of those that are left")
      ->capture_default_str();
  app.add_option("--shrink-to", plan.shrink_to, "workers that are left")->capture_default_str();
}

void describe(CLI::App& app, CommandLine& line) {
  describe_plan(app, line.plan);
  app.add_option("--batch", line.learner.batch, "samples per worker and step")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--lr", line.learner.rate, "learning rate for the batch of one worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--momentum", line.learner.momentum, "share of the last update that is kept")
      ->capture_default_str();
  app.add_option("--policy", line.policy, "what becomes of the rate when the workers change")
      ->check(examples::one_of(elastic::kResizePolicies))
      ->capture_default_str();
  app.add_option("--seed", line.learner.seed, "of the first weights and of the order of samples")
      ->capture_default_str();
  app.add_option("--data", line.data, "the digits, or others like them, as CSV")
      ->capture_default_str();
  app.add_option("--out", line.out, "file for the lines of JSON; default: print them");
  app.add_flag("--elastic", line.elastic, "be one worker of the job that the launcher started");
}

void train(CommandLine line) {
  line.learner.policy = *elastic::find_named(elastic::kResizePolicies, line.policy);
  dynamic_sgd::check(line.plan);
  const digits::Dataset data = digits::split(digits::read_samples(line.data));
  dynamic_sgd::Learner learner(line.learner, data.training);
  dynamic_sgd::HeldOut held_out(data.test);
  dynamic_sgd::Record record(line.out);
  const auto write = [&](const dynamic_sgd::StepInfo& info) {
    record.add(info, held_out.evaluate(learner.weights()));
  };
  if (!line.elastic) return dynamic_sgd::train_simulated(line.plan, learner, write);

  elastic::init();
  dynamic_sgd::ElasticJob job(line.plan, learner);
  job.on_step = [&](const dynamic_sgd::StepInfo& info) {
    if (elastic::rank() == 0) write(info);
  };
  job.train();
  elastic::shutdown();
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line;
  CLI::App app("Trains a small network while the number of workers changes.");
  describe(app, line);
  return examples::run_program(app, argc, argv, [&] { train(std::move(line)); });
}
