#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/collective/collective_options.hpp"
#include "benchmarks/model/model_options.hpp"
#include "benchmarks/sparse/sparse_options.hpp"
#include "benchmarks/steps/fusion_options.hpp"
#include "benchmarks/steps/scaling_options.hpp"
#include "benchmarks/tune/tune_options.hpp"

namespace elastic::bench {

/// Options of `elastic-bench recovery`.
struct RecoveryOptions {
  int np = 4;
  std::size_t bytes = std::size_t{4} << 20;
  int runs = 20;
  std::string fault = "sigkill";
  std::string moment = "call";  ///< of the fault: in a call of the victim, or between two calls
  std::string device = "host";  ///< memory of the tensors: host or cuda
  int evict_after_ms = 500;     ///< of the job: silence after which a worker is evicted
  std::string transport;
  std::uint64_t seed = 0;  ///< for the choice of victims and moments
  std::string json;
  std::string command;
};

/// Options of `elastic-bench recovery-worker`, which a recovery run starts.
struct RecoveryWorkerOptions {
  int np = 0;
  std::size_t bytes = 0;
  std::vector<int> victims;        ///< ranks; the first of them injects the fault into all
  bool stops = false;              ///< SIGSTOP instead of SIGKILL
  bool between = false;            ///< the fault comes before the victim's call, not in it
  std::vector<std::string> hosts;  ///< of all ranks (HostNetwork::spaces); if given, the fault cuts
                                   ///< the link between the victims, which live on
  std::string device = "host";     ///< see RecoveryOptions
  double delay = 0;                ///< from the call's start, as a part of its usual duration
  std::string transport;
  std::string folder;  ///< for the times
};

/// Options of `elastic-bench join`.
struct JoinOptions {
  int np = 4;  ///< workers, including the joiner
  std::size_t state_bytes = std::size_t{64} << 20;
  int runs = 5;
  std::string transport;
  std::string json;
  std::string command;
};

/// Options of `elastic-bench join-worker`, which a join run starts.
struct JoinWorkerOptions {
  int np = 0;
  std::size_t state_bytes = 0;
  std::string transport;
  std::string folder;  ///< for the times
  std::string job;     ///< for the request that starts the joiner
};

struct PrintAndExit {
  std::string text;
};

using Request = std::variant<CollectiveOptions, FusionOptions, ScalingOptions, TuneOptions,
                             SparseOptions, ModelOptions, RecoveryOptions, RecoveryWorkerOptions,
                             JoinOptions, JoinWorkerOptions, PrintAndExit>;

/// Parses `arguments`, which lack the program's name. kInvalidArgument names the wrong option.
Result<Request> parse_command_line(const std::vector<std::string>& arguments);

/// The arguments of each rank of a measurement: the user's, and the options that make it a rank.
std::vector<std::string> rank_arguments(const RankOptions& options);
/// The arguments of a worker process.
std::vector<std::string> worker_arguments(const RecoveryWorkerOptions& options);
std::vector<std::string> worker_arguments(const JoinWorkerOptions& options);

}  // namespace elastic::bench
