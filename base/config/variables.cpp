#include "base/config/variables.hpp"

#include <limits>

namespace elastic {

namespace {

constexpr auto kUser = Variable::SetBy::kUser;
constexpr auto kLauncher = Variable::SetBy::kLauncher;
constexpr std::size_t kMostOptionBytes = std::size_t{1} << 40;

/// The job, and this worker in it.
std::vector<Variable> job_variables() {
  return {
      {"ELASTIC_RENDEZVOUS", "rendezvous", kUser,
       "Address of the rendezvous server, and of its standbys. If it is empty under mpirun or srun "
       "on one machine, "
       "rank 0 starts a server. elasticrun sets it for its workers.",
       any_text(&Options::rendezvous, "host:port or [v6]:port, or several with commas")},
      {"ELASTIC_JOB", "job", kUser,
       "Id of the job, the same for all its workers. elasticrun sets it for its workers.",
       any_text(&Options::job, "a name")},
      {"ELASTIC_SECRET_FILE", "secret_file", kUser,
       "File with the job's secret, 64 hex digits, readable by its owner alone.",
       any_text(&Options::secret_file, "a path")},
      {"ELASTIC_SECRET_FD", "secret_fd", kLauncher,
       "Inherited descriptor of a file with the job's secret; -1 for none.",
       whole_number(&Options::secret_fd, -1, 1 << 20)},
      {"ELASTIC_ENCRYPT", "encrypt", kUser,
       "1 encrypts all TCP connections with TLS 1.3. The same for all workers and the server.",
       flag(&Options::encrypt)},
      {"ELASTIC_SLOT", "slot", kLauncher, "Rank wished for in the first view; -1 for none.",
       whole_number(&Options::slot, -1, std::numeric_limits<int>::max())},
      {"ELASTIC_LABEL", "label", kLauncher,
       "Name of the worker, which elasticrun ctl status shows.",
       any_text(&Options::label, "a name")},
      {"ELASTIC_RESTART", "restart", kLauncher,
       "Number of times that the launcher has started this slot before.",
       whole_number(&Options::restart, 0, 1 << 30)},
  };
}

/// The backend of collectives.
std::vector<Variable> backend_variables() {
  return {
      {"ELASTIC_BACKEND", "backend", kUser,
       "Library that performs the collectives. The same for all workers.",
       backend_name(&Options::backend)},
      {"ELASTIC_BACKEND_PATH", "backend_path", kUser,
       "Folder with the backends that are loaded. Empty: the folder of libelastic.",
       any_text(&Options::backend_path, "a path")},
      {"ELASTIC_NCCL_LIBRARY", "nccl_library", kUser,
       "File of NCCL that the backend nccl loads. Empty: libnccl.so.2, as the dynamic linker finds "
       "it.",
       any_text(&Options::nccl_library, "a path"), "nccl"},
      {"ELASTIC_NCCL_MEANWHILE", "nccl_meanwhile", kUser,
       "How tensors on devices travel while NCCL is not ready. host: through host memory. wait: "
       "they wait for NCCL, and go through host memory only where it fails.",
       choice(&Options::nccl_meanwhile, kNcclMeanwhiles), "nccl"},
      {"ELASTIC_NCCL_REGISTER", "nccl_register", kUser,
       "Whether the buckets of allreduces are registered with NCCL; then they do not overlap "
       "(ELASTIC_NCCL_OVERLAP). auto: before NCCL 2.28.3, whose successors do not let an abort "
       "interrupt collectives in registered memory over NVLink SHARP.",
       choice(&Options::nccl_register, kNcclRegisters), "nccl"},
      {"ELASTIC_NCCL_SHRINK", "nccl_shrink", kUser,
       "How NCCL's communicator is made after a death or a removal. auto: from the one before, if "
       "NCCL has ncclCommShrink (2.27). off: anew.",
       choice(&Options::nccl_shrink, kNcclShrinks), "nccl"},
      {"ELASTIC_NCCL_OVERLAP", "nccl_overlap", kUser,
       "Whether a bucket of tensors on a device begins while NCCL sums the one before. auto: if "
       "all members know it by then, and buckets are not registered (ELASTIC_NCCL_REGISTER). off: "
       "one after the other.",
       choice(&Options::nccl_overlap, kNcclOverlaps), "nccl"},
      {"ELASTIC_NCCL_MIN_CTAS", "nccl_min_ctas", kUser,
       "Least number of CTAs of a collective of NCCL. 0: NCCL's default.",
       whole_number(&Options::nccl_min_ctas, 0, 64, "CTAs"), "nccl"},
      {"ELASTIC_NCCL_MAX_CTAS", "nccl_max_ctas", kUser,
       "Largest number of CTAs of a collective of NCCL. 0: NCCL's default.",
       whole_number(&Options::nccl_max_ctas, 0, 64, "CTAs"), "nccl"},
      {"ELASTIC_NCCL_CTA_POLICY", "nccl_cta_policy", kUser,
       "How NCCL shares the device with other work, since NCCL 2.27. efficiency: with fewer CTAs. "
       "zero: with none where copy engines can do the work.",
       choice(&Options::nccl_cta_policy, kNcclCtaPolicies), "nccl"},
      {"ELASTIC_NCCL_NET", "nccl_net", kUser,
       "Network of NCCL between hosts, such as IB or Socket. Empty: NCCL's choice.",
       any_text(&Options::nccl_net, "a name"), "nccl"},
  };
}

/// Links between workers.
std::vector<Variable> link_variables() {
  return {
      {"ELASTIC_TRANSPORT", "transport", kUser,
       "Links between workers. auto: shared memory on one host, TCP between hosts.",
       choice(&Options::transport, kTransports)},
      {"ELASTIC_BIND", "bind", kUser,
       "Address on which a worker accepts data connections; 0.0.0.0 or :: for all interfaces.",
       any_text(&Options::bind, "an address")},
      {"ELASTIC_NETWORK", "network", kUser,
       "Which of a host's addresses other workers use, the first preferred; in place of "
       "ELASTIC_BIND. Empty: all that ELASTIC_BIND has.",
       network_list(&Options::network)},
      {"ELASTIC_DATA_PORTS", "data_ports", kUser,
       "Ports on which workers accept data connections, one for each worker of a host. Empty: any.",
       port_range(&Options::data_ports)},
      {"ELASTIC_TCP_STREAMS", "tcp_streams", kUser,
       "TCP connections of a link. 0: one on a host, and a measured number between hosts. Where "
       "workers differ, a link has the number of the worker that makes it.",
       whole_number(&Options::tcp_streams, 0, 64, "connections")},
      {"ELASTIC_TCP_THREADS", "tcp_threads", kUser,
       "Threads that move the bytes of a large tensor over links of several TCP connections. 0: by "
       "the cores that each worker of the host has, at most four.",
       whole_number(&Options::tcp_threads, 0, 64, "threads")},
      {"ELASTIC_TCP_CONGESTION", "tcp_congestion", kUser,
       "Congestion control of TCP between workers, such as cubic or bbr. Empty: reno on one host, "
       "otherwise the system's.",
       any_text(&Options::tcp_congestion, "a name")},
      {"ELASTIC_ALL_LINKED", "all_linked", kUser,
       "Up to this many members every pair of workers has links from the start; with more, a "
       "worker makes most of its links when it needs them. The same for all workers.",
       whole_number(&Options::all_linked, 0, 10000, "members")},
      {"ELASTIC_SHM_RING_BYTES", "shm_ring_bytes", kUser,
       "Size of the ring in shared memory that each link has for each direction; with more than 16 "
       "workers on a host the rings are smaller in proportion.",
       byte_count(&Options::shm_ring_bytes, 65536, kMostOptionBytes, 65536)},
  };
}

/// How collectives are performed.
std::vector<Variable> operation_variables() {
  return {
      {"ELASTIC_ALGORITHM", "algorithm", kUser,
       "Algorithm of every allreduce, for comparisons. auto: by size and by measured links. The "
       "same for all workers.",
       choice(&Options::algorithm, kAlgorithms)},
      {"ELASTIC_SEGMENT_BYTES", "segment_bytes", kUser,
       "Largest segment of a tensor. A larger tensor travels in several segments.",
       byte_count(&Options::segment_bytes, 4096, 1U << 26, 64)},
      {"ELASTIC_BUCKET_BYTES", "bucket_bytes", kUser,
       "Largest bucket into which named tensors are fused; under nccl those on devices into four "
       "times as large ones. 0: each tensor alone.",
       byte_count(&Options::bucket_bytes, 0, kMostOptionBytes, 1)},
      {"ELASTIC_AUTOTUNE", "autotune", kUser,
       "1: rank 0 finds the size of buckets with the shortest steps, beginning with "
       "ELASTIC_BUCKET_BYTES. Its log at info says what it tried.",
       flag(&Options::autotune)},
  };
}

/// Time limits, and stalls.
std::vector<Variable> wait_variables() {
  return {
      {"ELASTIC_INIT_TIMEOUT_MS", "init_timeout", kUser,
       "Longest wait of init for the server and the first view.",
       milliseconds(&Options::init_timeout, 1)},
      {"ELASTIC_VIEW_TIMEOUT_MS", "view_timeout", kUser,
       "Longest wait of a call for a new view after a member was lost.",
       milliseconds(&Options::view_timeout, 1)},
      {"ELASTIC_STALL_WARNING_MS", "stall_warning", kUser,
       "A stall of this length is reported in the log. The smallest value of all ranks applies.",
       milliseconds(&Options::stall_warning, 1)},
      {"ELASTIC_STALL_TIMEOUT_MS", "stall_timeout", kUser,
       "A stall of this length ends the job. 0: no limit. The smallest limit of all ranks applies.",
       milliseconds(&Options::stall_timeout, 0)},
  };
}

/// Steps of a training.
std::vector<Variable> training_variables() {
  return {
      {"ELASTIC_COMPARE_STEPS", "compare_steps", kUser,
       "Commits between two comparisons of the workers' step times. 0: no comparison. The same for "
       "all workers.",
       whole_number(&Options::compare_steps, 0, 1 << 30, "commits")},
      {"ELASTIC_NON_FINITE", "non_finite", kUser,
       "Reaction of FiniteCheck to NaN and Inf. The same for all workers.",
       choice(&Options::non_finite, kNonFinites)},
      {"ELASTIC_REJOIN", "rejoin", kUser,
       "1: run lets an evicted worker join again as a new one. 0: the eviction is an error.",
       flag(&Options::rejoin)},
      {"ELASTIC_RESIZE_POLICY", "resize_policy", kUser,
       "Change of the learning rate as workers join or leave, for trainers that take it from here. "
       "The same for all workers.",
       choice(&Options::resize_policy, kResizePolicies)},
      {"ELASTIC_COMPRESSION", "compression", kUser,
       "Compression of gradients, for trainers that take it from here. The same for all workers.",
       compression_form(&Options::compression)},
  };
}

std::vector<Variable> all() {
  std::vector<Variable> result;
  for (const auto& subject : {job_variables(), backend_variables(), link_variables(),
                              operation_variables(), wait_variables(), training_variables()}) {
    result.insert(result.end(), subject.begin(), subject.end());
  }
  result.push_back(
      {"ELASTIC_TIMELINE", "timeline", kUser,
       "File of a timeline of each worker: trace.json becomes trace.WORKER.json, with its id. "
       "Empty: none.",
       any_text(&Options::timeline, "a path")});
  result.push_back({"ELASTIC_FLIGHT_RECORDER", "flight_recorder", kUser,
                    "Folder for the latest operations of a worker that leaves in an error or is in "
                    "a stall. Empty: flight-JOB in elastic-UID of XDG_RUNTIME_DIR or /tmp.",
                    any_text(&Options::flight_recorder, "a path")});
  result.push_back({"ELASTIC_LOG_LEVEL", "log_level", kUser,
                    "Lines of the log from this level on are written.",
                    choice(&Options::log_level, kLogLevels)});
  return result;
}

}  // namespace

const std::vector<Variable>& variables() {
  static const std::vector<Variable> kVariables = all();
  return kVariables;
}

const std::vector<LibraryVariable>& library_variables() {
  static const std::vector<LibraryVariable> kVariables = {
      {"NCCL_HOSTID", "nccl", "Name of the host in NCCL, which tells ranks of one host apart."},
      {"NCCL_MULTI_RANK_GPU_ENABLE", "nccl", "Not 0: ranks of one host may share a device."},
  };
  return kVariables;
}

BackendSettings settings_of(std::string_view backend, const Options& options,
                            const EnvironmentMap& environment) {
  BackendSettings settings;
  for (const Variable& variable : variables()) {
    if (variable.backend == backend) settings[variable.name] = variable.values.get(options);
  }
  for (const LibraryVariable& variable : library_variables()) {
    const auto found = environment.find(variable.name);
    if (variable.backend == backend && found != environment.end()) settings.insert(*found);
  }
  return settings;
}

}  // namespace elastic
