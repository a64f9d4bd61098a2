#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/config/slurm_step.hpp"
#include "base/status.hpp"
#include "rendezvous/launcher/notice/notice.hpp"

namespace elastic::launcher {

/// Where a job runs that one elasticrun starts on several hosts.
struct HostsOptions {
  std::string list;    ///< "a:2,b:2"; or
  std::string file;    ///< one host per line; or
  std::string script;  ///< a command that prints such lines
  bool pack = false;   ///< workers fill one host after the other
  std::string ssh = "ssh";
  std::string ssh_arguments;
  std::vector<std::string> variables;  ///< NAME or NAME=VALUE, for the other hosts

  bool given() const { return !list.empty() || !file.empty() || !script.empty(); }
};

/// The options of `elasticrun [options] program args…`.
struct LaunchOptions {
  int np = 0;      ///< that this launcher starts
  int job_np = 0;  ///< that the job begins with: np, unless other launchers start some of them
  int min_np = 1;
  int max_np = 0;  ///< job_np unless given
  int max_restarts = 3;
  int max_job_restarts = 0;
  std::string bind = "127.0.0.1";
  std::uint16_t port = 0;       ///< 0: any
  std::string join;             ///< "host:port" of a job's server; empty: a server in this process
  std::string connection_file;  ///< of a job to join, in place of `join` and its secret
  std::string secret_file;      ///< empty: a secret is drawn, or read as `secret_stdin` says
  bool secret_stdin = false;    ///< the secret is read from stdin
  bool end_with_stdin = false;  ///< the process that started this one holds the other end of it
  std::string host;             ///< this host's name for people
  std::string network;          ///< as Options::network, for all workers; empty: as their own say
  std::string data_ports;       ///< as Options::data_ports
  std::string prepare;          ///< a command on this host before its workers; empty: none
  /// Where this launcher, which holds the server, tells the other tasks of its step of Slurm's how
  /// to reach it; empty: nowhere. They are on hosts such as `reached_from`; empty: on this one.
  std::string shared_file;
  std::string reached_from;
  std::string reached_at;  ///< this host's address on the way there
  /// Slurm signals every process of a task: the workers ignore the signals that are for this one.
  bool workers_ignore_signals = false;
  HostsOptions hosts;
  std::optional<notice::NoticeSource> notice;  ///< that says when this machine is to end
  std::string notice_text;                     ///< as it was given
  std::optional<int> number;  ///< of this launcher in the order of ranks; none: as it comes
  int slots = 0;              ///< workers that this launcher runs at most
  std::string job;            ///< drawn at random unless given; with `join`, "": the server says it
  bool encrypt = false;       ///< TLS, for server and workers
  Milliseconds evict_after{500};
  Milliseconds max_join_stall{10000};
  Milliseconds disconnect_grace{1500};
  Milliseconds outage_window{300000};
  Milliseconds start_timeout{60000};
  /// Workers wait for so much longer than `start_timeout`, since their server says what is missing.
  static constexpr Milliseconds kStartMargin{30000};
  Milliseconds below_minimum_timeout{60000};
  std::optional<Milliseconds> stall_timeout;  ///< none: as the workers' own options say
  Milliseconds drain{30000};
  Milliseconds exit{300000};
  Milliseconds quarantine{60000};  ///< the first pause of a host whose workers fail; 0: none
  bool joins() const { return !join.empty() || !connection_file.empty(); }
  std::string event_log;   ///< empty: none
  std::string http;        ///< where the job is shown over HTTP; empty: nowhere
  std::string output_dir;  ///< empty: the launcher's own stdout and stderr
  bool prefix = true;
  bool terminal = true;              ///< the workers' stdout is a pseudo-terminal, not a pipe
  std::vector<std::string> command;  ///< the program and its arguments
};

/// A text to print instead of doing anything: help, version, environment variables.
struct PrintAndExit {
  std::string text;
};
struct CheckBuild {};
using LaunchRequest = std::variant<LaunchOptions, PrintAndExit, CheckBuild>;

/// `arguments` without the program's own name. kInvalidArgument names the option. `step`: of this
/// process, or what is wrong with its variables.
Result<LaunchRequest> parse_launch_options(
    const std::vector<std::string>& arguments,
    const Result<std::optional<SlurmStep>>& step = std::optional<SlurmStep>());

/// Job ids are file names and go into messages.
Status check_job_id(const std::string& job);

}  // namespace elastic::launcher
