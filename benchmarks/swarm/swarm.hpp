#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/clock.hpp"
#include "benchmarks/swarm/swarm_member.hpp"

namespace elastic::bench {

/// The members of one job, all in this thread, and counts of what happens to them.
class Swarm final : private SwarmMember::Observer {
 public:
  explicit Swarm(SwarmServer server) : server_(std::move(server)) {}

  void add(int workers);
  /// So many die at once, evenly spread over the ranks; a single one is the last.
  void kill(int workers);

  /// Runs the members until `done`, or for `limit`. \returns whether it is done.
  bool run_until(const std::function<bool()>& done, Duration limit);

  std::size_t size() const { return members_.size(); }
  std::size_t connected() const { return connected_; }
  /// Whether all members are in one view, and it has no others.
  bool agrees() const;
  /// Members that were told that they are none, or could not be.
  std::size_t ended() const { return ended_.size(); }
  /// Why the first of them ended; empty if none has.
  std::string first_end() const;
  /// Since the last call of `count_anew`: rounds that began, and views that members entered.
  std::size_t rounds() const { return rounds_.size(); }
  std::size_t views() const { return views_.size(); }
  void count_anew();
  /// The bytes that all members have received so far.
  std::uint64_t received_bytes() const;

 private:
  void on_connected(SwarmMember& member) override;
  void on_disconnected(SwarmMember& member) override;
  void on_frozen(std::uint64_t round) override;
  void on_installed(SwarmMember& member, const rendezvous::View& view) override;
  void on_ended(SwarmMember& member, const Status& why) override;
  bool has_died(const std::string& incarnation) const override;
  void uncount(const SwarmMember& member);
  void leave_view(const SwarmMember& member);

  const SwarmServer server_;
  boost::asio::io_context io_{1};
  std::vector<std::shared_ptr<SwarmMember>> members_;
  int slots_ = 0;  ///< given so far
  std::size_t connected_ = 0;
  std::map<std::uint64_t, std::size_t> in_view_;  ///< members by the generation that they are in
  std::size_t latest_size_ = 0;                   ///< of the view of the highest generation
  std::set<std::string> dead_;
  std::map<std::string, std::string> ended_;
  std::set<std::uint64_t> rounds_;
  std::set<std::uint64_t> views_;
};

}  // namespace elastic::bench
