#include "collectives/backend/nccl/verdict.hpp"

#include <algorithm>

namespace elastic::collectives::nccl {

Verdict::Verdict(transport::Mesh& mesh, int tree_from)
    : mesh_(mesh), is_tree_(mesh.size() >= tree_from) {
  const int first = is_tree_ ? mesh.rank() * kBranches + 1 : 0;
  const int end = is_tree_ ? std::min(first + kBranches, mesh.size()) : mesh.size();
  for (int peer = first; peer < end; ++peer) {
    if (peer != mesh.rank()) peers_.push_back(peer);
  }
  if (is_tree_ && mesh.rank() > 0) parent_ = (mesh.rank() - 1) / kBranches;
  for (Answers& answers : answers_) answers.heard.resize(peers_.size());
}

Verdict::~Verdict() {
  if (begun_) mesh_.abandon();
}

Status Verdict::begin(const transport::OpTag& tag) {
  begun_ = true;
  mesh_.begin(tag, {});
  std::vector<int> all = peers_;
  if (has_parent()) all.insert(all.begin(), parent_);
  if (Status linked = mesh_.require(all); !linked.ok()) return linked;
  for (Answers& answers : answers_) {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      mesh_.link(peers_[i]).receive({{&answers.heard[i], 1}, {}});
    }
    if (has_parent()) mesh_.link(parent_).receive({{&answers.heard_above, 1}, {}});
  }
  return {};
}

void Verdict::say(Question question, std::byte answer) {
  std::optional<std::byte>& own = answers_[question].own;
  if (!own) own = answer;
}

void Verdict::say_ready() {
  say(kReady, kYes);
  pass_on();
}

bool Verdict::all_are_ready() {
  pass_on();
  return are_all(kReady);
}

bool Verdict::has_failed() {
  pass_on();
  return answers_[kSuccess].up == kNo || answers_[kSuccess].down == kNo;
}

void Verdict::say_failed() {
  say(kReady, kNo);
  say(kSuccess, kNo);
  pass_on();
}

bool Verdict::are_all(Question question) const {
  const Answers& answers = answers_[question];
  return (is_tree_ ? answers.down : answers.up) == kYes;
}

/// In this order: the answers to the first question are the first messages.
void Verdict::pass_on() {
  pass_on(kReady);
  pass_on(kSuccess);
}

/// Says up and down what has become known.
void Verdict::pass_on(Question question) {
  Answers& answers = answers_[question];
  bool all_said = answers.own.has_value();
  bool no = answers.own == kNo;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const bool said = mesh_.link(peers_[i]).received() > question;
    all_said = all_said && said;
    no = no || (said && answers.heard[i] == kNo);
  }
  if (!answers.up && (no || all_said)) {
    // A "no" may come before all ranks below have said whether they are ready.
    if (question == kSuccess && !answers_[kReady].up) {
      say_up(kReady, kNo);
      pass_on(kReady);
    }
    say_up(question, no ? kNo : kYes);
  }
  if (answers.down) return;
  if (!is_tree_) {
    answers.down = answers.own;
  } else if (has_parent()) {
    if (mesh_.link(parent_).received() > question) answers.down = answers.heard_above;
  } else {
    answers.down = answers.up;
  }
  if (!answers.down) return;
  for (const int peer : peers_) mesh_.link(peer).send({&*answers.down, 1});
}

void Verdict::say_up(Question question, std::byte answer) {
  std::optional<std::byte>& up = answers_[question].up;
  up = answer;
  if (has_parent()) mesh_.link(parent_).send({&*up, 1});
}

bool Verdict::is_over() const {
  for (const Answers& answers : answers_) {
    if (!answers.up || !answers.down) return false;
  }
  const auto is_done = [this](int peer) {
    return mesh_.link(peer).received() == kQuestions && mesh_.link(peer).sent() == kQuestions;
  };
  return (!has_parent() || mesh_.link(parent_).sent() == kQuestions) &&
         std::ranges::all_of(peers_, is_done);
}

Result<bool> Verdict::all(bool mine, const std::function<void()>& meanwhile) {
  say(kReady, kNo);
  say(kSuccess, mine ? kYes : kNo);
  const Status status = mesh_.run_until([&] {
    pass_on();
    if (meanwhile) meanwhile();
    return is_over();
  });
  if (!status.ok()) return status;
  begun_ = false;
  return are_all(kSuccess);
}

}  // namespace elastic::collectives::nccl
