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
  heard_.resize(peers_.size());
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
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    mesh_.link(peers_[i]).receive({{&heard_[i], 1}, {}});
  }
  if (has_parent()) mesh_.link(parent_).receive({{&heard_above_, 1}, {}});
  return {};
}

bool Verdict::has_failed() {
  pass_on();
  return up_ == kNo || down_ == kNo;
}

/// Says up and down what has become known.
void Verdict::pass_on() {
  bool all_said = own_.has_value();
  bool no = own_ == kNo;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const bool said = mesh_.link(peers_[i]).received() == 1;
    all_said = all_said && said;
    no = no || (said && heard_[i] == kNo);
  }
  if (!up_ && (no || all_said)) {
    up_ = no ? kNo : kYes;
    if (has_parent()) mesh_.link(parent_).send({&*up_, 1});
  }
  if (down_) return;
  if (!is_tree_) {
    down_ = own_;
  } else if (has_parent()) {
    if (mesh_.link(parent_).received() == 1) down_ = heard_above_;
  } else {
    down_ = up_;
  }
  if (!down_) return;
  for (const int peer : peers_) mesh_.link(peer).send({&*down_, 1});
}

bool Verdict::is_over() const {
  if (!up_ || !down_ || (has_parent() && mesh_.link(parent_).sent() != 1)) return false;
  return std::ranges::all_of(peers_, [this](int peer) {
    return mesh_.link(peer).received() == 1 && mesh_.link(peer).sent() == 1;
  });
}

Result<bool> Verdict::all(bool mine) {
  own_ = mine ? kYes : kNo;
  const Status status = mesh_.run_until([this] {
    pass_on();
    return is_over();
  });
  if (!status.ok()) return status;
  begun_ = false;
  return (is_tree_ ? down_ : up_) == kYes;
}

}  // namespace elastic::collectives::nccl
