#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "disk.hpp"
#include "rendezvous/membership/membership.hpp"
#include "sim_context.hpp"

namespace elastic::simulation {

/// Stands for the server's process: the real Membership behind connections and a journal. It can
/// die anywhere, also between two actions of one decision.
class ModelServer {
 public:
  explicit ModelServer(SimContext& context) : context_(context) {}

  /// Begins again with what the disk has.
  void start();
  bool is_up() const { return membership_.has_value(); }

  /// Dies when it has carried out `actions` more.
  void crash_after(unsigned actions) { actions_to_crash_ = actions; }
  /// Dies in its next write, of which that remains.
  void crash_in_append(Disk::Remains remains) { remains_ = remains; }
  /// It will come back without its journal.
  void lose_journal() { journal_is_lost_ = true; }
  void crash();

  Connection& accept(Node worker, std::function<void(Connection&)> on_lost_by_worker);
  void receive(Connection& connection, const rendezvous::Message& message);
  /// A message of that worker arrives damaged: the server drops the connection. The worker lives.
  void mishear(const std::string& worker);
  /// The connection of that worker is reset on its way.
  void reset(const std::string& worker);
  rendezvous::Decision decide(const rendezvous::Event& event);

  const rendezvous::Membership* membership() const { return is_up() ? &*membership_ : nullptr; }

 private:
  void enter(Connection& connection, const rendezvous::Register& registration);
  void lost(const Connection& connection);
  void count_costs(const rendezvous::Decision& decision) const;
  void tell_of_end(const rendezvous::Decision& decision);
  void perform(const rendezvous::Action& action);
  void send(const std::string& to, const rendezvous::Message& message);
  void close(const std::string& who);
  void write(const rendezvous::JournalRecord& record);
  void come_back();
  void schedule_tick();
  void note(const std::string& what) const;

  void watch(const rendezvous::Message& sent, const std::string& to);
  void forge_last_report();

  SimContext& context_;
  Disk disk_;
  std::optional<rendezvous::Membership> membership_;
  std::vector<Connection*> accepted_;           // since it came up, closed ones too
  std::map<std::string, Connection*> workers_;  // by incarnation
  std::map<const Connection*, std::string> registered_;
  TimePoint tick_at_ = TimePoint::max();
  std::optional<unsigned> actions_to_crash_;
  std::optional<Disk::Remains> remains_;
  bool journal_is_lost_ = false;
  bool over_ = false;  // it has decided the end of the job

  // For Mutation::kEarlyConclusion: the present immediate round, and which workers have reported.
  std::uint64_t round_ = 0;
  std::map<std::string, bool> reported_;
  std::optional<rendezvous::Report> latest_;
};

}  // namespace elastic::simulation
