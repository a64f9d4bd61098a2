#include "model_trainer.hpp"

#include <algorithm>
#include <utility>

namespace elastic::simulation {

ModelTrainer::ModelTrainer(Process& process, Callbacks callbacks)
    : process_(process), callbacks_(std::move(callbacks)) {}

void ModelTrainer::start() {
  process_.around().scenario.uses_run ? synchronise() : begin_step();
}

void ModelTrainer::synchronise() {
  synchronising_ = true;
  left_[0] = kOperationsPerSync;
  callbacks_.call(0);
}

void ModelTrainer::begin_step() {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    left_[lane] = kOperationsPerStep;
    process_.later(Milliseconds(0), Milliseconds(4), [this, lane] { callbacks_.call(lane); });
  }
}

void ModelTrainer::on_done(std::size_t lane) {
  if (--left_[lane] > 0) {
    return process_.later(Milliseconds(0), Milliseconds(4),
                          [this, lane] { callbacks_.call(lane); });
  }
  if (std::any_of(left_.begin(), left_.end(), [](unsigned left) { return left > 0; })) return;
  if (!synchronising_)
    return process_.later(Milliseconds(0), Milliseconds(2), [this] { finish_step(); });
  synchronising_ = false;
  synced_ = true;
  commits_ = callbacks_.admitted_at();
  go_on_from_boundary(false);
}

void ModelTrainer::finish_step() {
  ++commits_;
  if (stop_at_ == 0 || commits_ < stop_at_) return go_on_from_boundary(false);
  paused_ = true;
  paused_round_ = round_;
  stop_at_ = 0;
  process_.post([this, round = round_] { callbacks_.on_paused(round); });
}

void ModelTrainer::resume() {
  if (std::exchange(paused_, false)) process_.post([this] { go_on_from_boundary(true); });
}

void ModelTrainer::go_on_from_boundary(bool was_paused) {
  const bool joined = was_paused && callbacks_.admitted_at() == commits_;
  if (joined && process_.around().scenario.uses_run) return synchronise();
  if (commits_ >= process_.around().scenario.steps) return bye(true);
  if (leave_early_) return bye(false);
  begin_step();
}

void ModelTrainer::bye(bool done) {
  said_bye_ = true;
  callbacks_.bye(done);
}

runtime::Participation::Promise ModelTrainer::propose(std::uint64_t round,
                                                      std::uint64_t at_commit) {
  const bool ahead = commits_ < at_commit;
  stop_at_ = ahead ? at_commit : 0;
  round_ = round;
  return {ahead, commits_};
}

std::string ModelTrainer::describe() const {
  std::string text = std::to_string(commits_) + " commits";
  if (paused_) text += ", paused";
  if (said_bye_) text += ", said bye";
  if (synchronising_) text += ", synchronising";
  return text;
}

}  // namespace elastic::simulation
