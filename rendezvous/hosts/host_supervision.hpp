#pragma once

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/hosts/host_list.hpp"
#include "rendezvous/launcher/exit_status.hpp"
#include "rendezvous/launcher/supervision.hpp"

namespace elastic::hosts {

using launcher::ExitStatus;
using launcher::Finish;
using launcher::JobPhase;
using launcher::JobStateChanged;
using launcher::RequestStop;
using launcher::Say;
using launcher::SignalReceived;
using launcher::TimePassed;

struct HostSupervisionOptions {
  int np = 0;      ///< workers that the job begins with; 0: as many as there are slots
  int max_np = 0;  ///< the most, however many slots there are; 0: no bound
  Placement placement = Placement::kSpread;
  Milliseconds start{60000};          ///< for which an agent may take to reach the server
  bool prepares = false;              ///< agents first run a command, for as long as that takes
  Milliseconds drain{30000};          ///< from a stop request to the end of the agents
  Milliseconds exit{300000};          ///< from the job's end
  Milliseconds exit_notice{6000};     ///< from the job's end to the naming of hosts not yet ended
  Milliseconds margin{15000};         ///< an agent needs so much longer for its own limits
  Milliseconds kill_grace{5000};      ///< from the end of an agent's stdin to SIGKILL
  Milliseconds first_pause{1000};     ///< before a host that failed is tried again
  Milliseconds longest_pause{60000};  ///< it doubles up to this, and begins anew
  Milliseconds proven{60000};         ///< after an agent has run for so long
  Milliseconds settle{1000};          ///< for the server's word, once no agent is left
};

// ---- events -----------------------------------------------------------------------------------
/// The list of hosts, at the start and whenever it is another.
struct ListChanged {
  HostList hosts;
};
/// The agent of a host has ended: elasticrun there, or ssh on the way.
struct AgentEnded {
  std::string host;
  ExitStatus status;
  std::string last_line;  ///< of what it wrote to stderr
  std::string command{};  ///< that reaches the host, as "ssh a"; empty: it is this machine
};
/// How many workers each agent runs, by host, of those that the server knows.
struct Counted {
  std::map<std::string, int> running;
  std::set<std::string> drained;  ///< hosts that the server lets have none any more
  bool joinable = false;
  std::set<std::string> quarantined{};  ///< hosts on which it starts none for now
};
using Event =
    std::variant<ListChanged, AgentEnded, Counted, JobStateChanged, SignalReceived, TimePassed>;

// ---- actions ----------------------------------------------------------------------------------
struct StartAgent {
  std::string host;
  int number = 0;  ///< its place in the order of ranks
  int np = 0;
  int slots = 0;
};
/// Ask the server to have at most so many workers on the host; with 0 its agent ends.
struct LimitHost {
  std::string host;
  int slots = 0;
};
/// Close the stdin of all agents: they stop their workers at once.
struct EndAgents {};
struct KillAgents {};
struct KillAgent {
  std::string host;
};
/// Tell the server how many workers can come to the first view.
struct Expect {
  int workers = 0;
};
/// Ask the server for so many workers more, where there is room.
struct AddWorkers {
  int count = 0;
};
using Action = std::variant<StartAgent, LimitHost, EndAgents, KillAgents, KillAgent, Expect,
                            AddWorkers, RequestStop, Say, Finish>;

/// The decisions of `elasticrun --hosts`: which hosts have an agent, with how many workers, and
/// what the end of an agent means. Agents supervise the workers. Without I/O; owned by one thread.
class HostSupervision {
 public:
  explicit HostSupervision(HostSupervisionOptions options) : options_(options) {}

  std::vector<Action> decide(const Event& event, TimePoint now);
  /// When TimePassed is due; TimePoint::max() for never.
  TimePoint next_tick() const;
  /// Workers that the first view waits for. After the first ListChanged.
  int expected() const { return expected_; }

 private:
  struct Place {
    int number = 0;
    int slots = 0;
    int workers = 0;               ///< that run, or are about to
    bool listed = true;            ///< in the latest list
    bool leaving = false;          ///< its workers are to leave, and its agent then ends
    bool drained_by_user = false;  ///< by ctl drain, a signal or a notice, and not by the list
    bool quarantined = false;      ///< an agent is to start no workers there
    bool alive = false;            ///< its agent runs
    bool counted = false;          ///< the server has known its agent
    bool unprepared = false;       ///< its latest agent ended since --prepare failed
    int failures = 0;              ///< in a row
    std::string failure{};         ///< the latest, for people
    TimePoint started{};
    TimePoint due = TimePoint::max();    ///< when its agent has to have reached the server
    bool overdue = false;                ///< it had not
    TimePoint again = TimePoint::max();  ///< when it is tried again
  };
  using Actions = std::vector<Action>;

  void on(const ListChanged& event, TimePoint now, Actions& actions);
  void on(const AgentEnded& event, TimePoint now, Actions& actions);
  void on(const Counted& event, TimePoint now, Actions& actions);
  void on(const JobStateChanged& event, TimePoint now, Actions& actions);
  void on(const SignalReceived& event, TimePoint now, Actions& actions);
  void on(const TimePassed& event, TimePoint now, Actions& actions);

  void begin(const HostList& hosts, TimePoint now, Actions& actions);
  int drop_unlisted(const HostList& hosts, Actions& actions);
  void shrink(const HostList& hosts, Actions& actions);
  void grow(Place& place, const Host& host, Actions& actions);
  void start(const std::string& host, Place& place, int np, TimePoint now, Actions& actions);
  void expect_placed(Actions& actions);
  void agent_failed(const AgentEnded& event, Place& place, TimePoint now, Actions& actions);
  Milliseconds time_to_come() const;
  void give_up_overdue_agents(TimePoint now, Actions& actions);
  void name_agents_left(TimePoint now, Actions& actions);
  void end_agents(TimePoint now, Actions& actions);
  void finish_if_over(TimePoint now, Actions& actions);
  Finish outcome() const;
  int workers() const;
  int room_to_target() const;
  int free_slots() const;
  static int free_slots(const Place& place);
  int agents() const;
  bool over() const { return phase_ == JobPhase::kDone || phase_ == JobPhase::kFailed; }
  bool ending() const { return over() || signals_ > 0; }

  HostSupervisionOptions options_;
  std::map<std::string, Place> places_;
  bool begun_ = false;
  int next_number_ = 0;
  int target_ = 0;    ///< workers that the job should have
  int expected_ = 0;  ///< of the first view
  int owed_ = 0;      ///< workers that went with their hosts and have no replacement
  JobPhase phase_ = JobPhase::kForming;
  std::string phase_text_;
  bool has_begun_ = false;  ///< the job; it may be over since
  int signals_ = 0;
  int first_signal_ = 0;
  bool stopped_ = false;  ///< on a request that the workers did not hear of
  bool failed_after_done_ = false;
  bool job_stopped_ = false;  ///< the job is done because it was stopped
  bool any_succeeded_ = false;
  bool finished_ = false;
  TimePoint begun_at_{};
  TimePoint notice_at_ = TimePoint::max();
  TimePoint end_at_ = TimePoint::max();
  TimePoint kill_at_ = TimePoint::max();
  TimePoint settled_at_ = TimePoint::max();
};

}  // namespace elastic::hosts
