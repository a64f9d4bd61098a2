#include "benchmarks/swarm/swarm.hpp"

#include <algorithm>
#include <cstddef>

#include <boost/asio/post.hpp>

namespace elastic::bench {

void Swarm::add(int workers) {
  SwarmMember::Observer& self = *this;
  for (int i = 0; i < workers; ++i) {
    members_.push_back(std::make_shared<SwarmMember>(io_, server_, slots_++, self));
    members_.back()->start();
  }
}

void Swarm::kill(int workers) {
  const auto count = static_cast<std::size_t>(workers);
  const std::size_t before = members_.size();
  for (std::size_t i = count; i > 0; --i) {
    const auto victim = members_.begin() + static_cast<std::ptrdiff_t>(before * i / count - 1);
    dead_.insert((*victim)->incarnation());
    uncount(**victim);
    members_.erase(victim);
  }
}

bool Swarm::run_until(const std::function<bool()>& done, Duration limit) {
  const TimePoint until = Clock::now() + limit;
  io_.restart();
  while (!done()) {
    if (io_.run_one_until(until) == 0) return done();
  }
  return true;
}

bool Swarm::agrees() const {
  return in_view_.size() == 1 && in_view_.begin()->second == members_.size() &&
         latest_size_ == members_.size();
}

std::string Swarm::first_end() const {
  return ended_.empty() ? std::string() : ended_.begin()->second;
}

void Swarm::count_anew() {
  rounds_.clear();
  views_.clear();
}

std::uint64_t Swarm::received_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& member : members_) bytes += member->received_bytes();
  return bytes;
}

void Swarm::on_connected(SwarmMember& /*member*/) {
  ++connected_;
}

void Swarm::on_disconnected(SwarmMember& /*member*/) {
  --connected_;
}

void Swarm::on_frozen(std::uint64_t round) {
  rounds_.insert(round);
}

void Swarm::on_installed(SwarmMember& member, const rendezvous::View& view) {
  views_.insert(view.generation);
  leave_view(member);
  ++in_view_[view.generation];
  if (in_view_.rbegin()->first == view.generation) latest_size_ = view.members.size();
}

void Swarm::on_ended(SwarmMember& member, const Status& why) {
  if (!ended_.emplace(member.incarnation(), why.message()).second) return;
  uncount(member);
  // It is not to go while it runs.
  boost::asio::post(io_, [this, &member] {
    std::erase_if(members_, [&](const auto& one) { return one.get() == &member; });
  });
}

bool Swarm::has_died(const std::string& incarnation) const {
  return dead_.contains(incarnation);
}

void Swarm::uncount(const SwarmMember& member) {
  if (member.connected()) --connected_;
  leave_view(member);
}

void Swarm::leave_view(const SwarmMember& member) {
  const auto view = in_view_.find(member.generation());
  if (view != in_view_.end() && --view->second == 0) in_view_.erase(view);
}

}  // namespace elastic::bench
