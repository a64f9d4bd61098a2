#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/collective_options.hpp"
#include "benchmarks/fusion_options.hpp"
#include "benchmarks/scaling_options.hpp"
#include "benchmarks/tune_options.hpp"

namespace elastic::bench {

/// `elastic-bench recovery`.
struct RecoveryOptions {
  int np = 4;
  std::size_t bytes = std::size_t{4} << 20;
  int runs = 20;
  std::string fault = "sigkill";
  std::string device = "host";  ///< whose memory the tensors lie in: host or cuda
  int evict_after_ms = 500;     ///< of the job: silence after which a worker is given up
  std::string transport;
  std::uint64_t seed = 0;  ///< of victims and moments
  std::string json;
  std::string command;
};

/// `elastic-bench recovery-worker`: what a recovery run starts.
struct RecoveryWorkerOptions {
  int np = 0;
  std::size_t bytes = 0;
  std::vector<int> victims;        ///< ranks; the first strikes all of them
  bool stops = false;              ///< with SIGSTOP instead of SIGKILL
  std::vector<std::string> hosts;  ///< of all ranks; where given, the victims live and the link
                                   ///< between them is cut: see HostNetwork::spaces
  std::string device = "host";     ///< see RecoveryOptions
  double delay = 0;                ///< how far into the call, as a part of its usual duration
  std::string transport;
  std::string folder;  ///< for the times
};

/// `elastic-bench join`.
struct JoinOptions {
  int np = 4;  ///< workers, the newcomer included
  std::size_t state_bytes = std::size_t{64} << 20;
  int runs = 5;
  std::string transport;
  std::string json;
  std::string command;
};

/// `elastic-bench join-worker`: what a join run starts.
struct JoinWorkerOptions {
  int np = 0;
  std::size_t state_bytes = 0;
  std::string transport;
  std::string folder;  ///< for the times
  std::string job;     ///< to ask for the newcomer
};

struct PrintAndExit {
  std::string text;
};

using Request =
    std::variant<CollectiveOptions, FusionOptions, ScalingOptions, TuneOptions, RecoveryOptions,
                 RecoveryWorkerOptions, JoinOptions, JoinWorkerOptions, PrintAndExit>;

/// `arguments` without the program's own name. kInvalidArgument names the option.
Result<Request> parse_command_line(const std::vector<std::string>& arguments);

/// What one rank of the same measurement is started with: what was typed, and that it is a rank.
std::vector<std::string> rank_arguments(const RankOptions& options);
/// What a worker is started with.
std::vector<std::string> worker_arguments(const RecoveryWorkerOptions& options);
std::vector<std::string> worker_arguments(const JoinWorkerOptions& options);

}  // namespace elastic::bench
