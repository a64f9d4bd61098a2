#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "elastic/detail/export.hpp"
#include "elastic/detail/named.hpp"

namespace elastic {

/// Links between workers.
enum class Transport : std::uint8_t {
  kAuto,  ///< shared memory on one host, TCP between hosts
  kShm,   ///< shared memory; the workers of a job are all on one host
  kTcp,   ///< TCP, on one host too
};
/// The names of the values in ELASTIC_TRANSPORT.
inline constexpr std::array<Named<Transport>, 3> kTransports{
    {{"auto", Transport::kAuto}, {"shm", Transport::kShm}, {"tcp", Transport::kTcp}}};

/// Algorithms of an allreduce; docs/architecture.md describes those for large tensors.
enum class Algorithm : std::uint8_t {
  kAuto,             ///< by size, and by what the links of a view were measured to do
  kOneShot,          ///< every rank sends its whole tensor to all others, and reduces all
  kDoubling,         ///< recursive doubling: log2(ranks) exchanges of the whole tensor
  kTwoRankExchange,  ///< two ranks of a host send each other their tensors, and both reduce
  kTwoShot,          ///< reduce-scatter and allgather, each directly between all ranks
  kHierarchical,     ///< within hosts, between hosts, within hosts
  kRing,             ///< reduce-scatter and allgather around a ring, segment by segment
  kCirculant,        ///< as hierarchical, with fewer hops between hosts than a ring of them
};
/// The names of the values in ELASTIC_ALGORITHM.
inline constexpr std::array<Named<Algorithm>, 8> kAlgorithms{
    {{"auto", Algorithm::kAuto},
     {"one_shot", Algorithm::kOneShot},
     {"doubling", Algorithm::kDoubling},
     {"two_rank_exchange", Algorithm::kTwoRankExchange},
     {"two_shot", Algorithm::kTwoShot},
     {"hierarchical", Algorithm::kHierarchical},
     {"ring", Algorithm::kRing},
     {"circulant", Algorithm::kCirculant}}};

/// The path of tensors on devices while NCCL is not ready, as after each change of the workers.
enum class NcclMeanwhile : std::uint8_t {
  kHost,  ///< through host memory, as under the other backends
  kWait,  ///< waits for NCCL; through host memory only where NCCL fails
};
/// The names of the values in ELASTIC_NCCL_MEANWHILE.
inline constexpr std::array<Named<NcclMeanwhile>, 2> kNcclMeanwhiles{
    {{"host", NcclMeanwhile::kHost}, {"wait", NcclMeanwhile::kWait}}};

/// Whether the buckets of allreduces on devices are registered with NCCL.
enum class NcclRegister : std::uint8_t {
  kAuto,    ///< where an abort can interrupt collectives in registered memory: before NCCL 2.28.3
  kAlways,  ///< a gain on machines with NVLink SHARP; there a death may last until NCCL gives up
  kNever,   ///< NCCL reduces by way of its own memory
};
/// The names of the values in ELASTIC_NCCL_REGISTER.
inline constexpr std::array<Named<NcclRegister>, 3> kNcclRegisters{
    {{"auto", NcclRegister::kAuto},
     {"always", NcclRegister::kAlways},
     {"never", NcclRegister::kNever}}};

/// How NCCL's communicator is made in a view that has only lost members.
enum class NcclShrink : std::uint8_t {
  kAuto,  ///< by ncclCommShrink from the communicator of the view before, since NCCL 2.27
  kOff,   ///< anew, after the end of the communicator of the view before
};
/// The names of the values in ELASTIC_NCCL_SHRINK.
inline constexpr std::array<Named<NcclShrink>, 2> kNcclShrinks{
    {{"auto", NcclShrink::kAuto}, {"off", NcclShrink::kOff}}};

/// Whether a bucket of tensors on a device begins while NCCL sums the one before.
enum class NcclOverlap : std::uint8_t {
  kAuto,  ///< where all members know the next bucket, and its result goes to no registered memory
  kOff,   ///< one bucket after the other
};
/// The names of the values in ELASTIC_NCCL_OVERLAP.
inline constexpr std::array<Named<NcclOverlap>, 2> kNcclOverlaps{
    {{"auto", NcclOverlap::kAuto}, {"off", NcclOverlap::kOff}}};

/// NCCL's choice between its own speed and the processors that it leaves to others (CTAPolicy).
enum class NcclCtaPolicy : std::uint8_t {
  kDefault,     ///< NCCL's own choice
  kEfficiency,  ///< few processors of the device, with little loss of speed
  kZero,        ///< none where the device's copy engines can do the work
};
/// The names of the values in ELASTIC_NCCL_CTA_POLICY.
inline constexpr std::array<Named<NcclCtaPolicy>, 3> kNcclCtaPolicies{
    {{"default", NcclCtaPolicy::kDefault},
     {"efficiency", NcclCtaPolicy::kEfficiency},
     {"zero", NcclCtaPolicy::kZero}}};

/// The reaction of FiniteCheck to NaN and Inf in gradients.
enum class NonFinite : std::uint8_t {
  kPass,   ///< does not look for them
  kSkip,   ///< leaves the step out on all ranks
  kError,  ///< an error on all ranks, which names rank and gradient
};
/// The names of the values in ELASTIC_NON_FINITE.
inline constexpr std::array<Named<NonFinite>, 3> kNonFinites{
    {{"pass", NonFinite::kPass}, {"skip", NonFinite::kSkip}, {"error", NonFinite::kError}}};

/// The change of the learning rate, and of the momentum gathered so far, when workers join or leave
/// and the global batch changes with them. Below, gamma is the factor on the base rate, and `u` the
/// momentum without a rate in it: `u = mu*u + g; w = w - gamma*eta*u`.
enum class ResizePolicy : std::uint8_t {
  kRamp,       ///< growth is taken over several steps, shrinking at once (see LearningRateRamp)
  kImmediate,  ///< gamma suits the new batch at once; u stays
  kRescale,    ///< as kImmediate, and u is multiplied by gamma before / gamma now: while the base
               ///< rate is constant the update goes on unbroken
  kReset,      ///< as kImmediate, and u begins again at 0
  kNone,       ///< gamma stays 1, whatever the batch
};

/// The names of the values in ELASTIC_RESIZE_POLICY.
inline constexpr std::array<Named<ResizePolicy>, 5> kResizePolicies{{
    {"ramp", ResizePolicy::kRamp},
    {"immediate", ResizePolicy::kImmediate},
    {"rescale", ResizePolicy::kRescale},
    {"reset", ResizePolicy::kReset},
    {"none", ResizePolicy::kNone},
}};

/// Lines of the log from this level on are written.
enum class LogLevel : std::uint8_t {
  kTrace,  ///< everything
  kDebug,  ///< interrupted operations, single steps, attempts to connect
  kInfo,   ///< changes of the view, refused connections, sums of times
  kWarn,   ///< what may need a remedy
  kError,  ///< what ends a connection, a worker or a job
  kOff,    ///< nothing
};
/// The names of the values in ELASTIC_LOG_LEVEL.
inline constexpr std::array<Named<LogLevel>, 6> kLogLevels{{{"trace", LogLevel::kTrace},
                                                            {"debug", LogLevel::kDebug},
                                                            {"info", LogLevel::kInfo},
                                                            {"warn", LogLevel::kWarn},
                                                            {"error", LogLevel::kError},
                                                            {"off", LogLevel::kOff}}};

/// Everything that can be set. Filled from code, then overridden by the environment: the variable
/// named with each field. A variable that starts with ELASTIC_ and is not named here, or whose
/// value is malformed, is an error at `init` that names it.
///
/// Byte counts take the suffixes K, M and G (powers of 1024). Times are in milliseconds.
struct Options {
  /// Address of the server, "host:port" or "[v6]:port", or of it and its standbys, with commas. Set
  /// by elasticrun; under mpirun on one machine it may be empty: rank 0 starts a server.
  /// ELASTIC_RENDEZVOUS.
  std::string rendezvous;

  /// Id of the job; all its workers have the same. Under mpirun without `rendezvous` it may be left
  /// empty; a process with several contexts gives each a job of its own. ELASTIC_JOB.
  std::string job;

  /// File with the job's secret, 64 hex digits; readable by its owner alone. ELASTIC_SECRET_FILE.
  std::string secret_file;

  /// Inherited descriptor of a file to read the secret from instead, -1 for none. The process reads
  /// it once and keeps the secret: further contexts need no descriptor. A descriptor from
  /// elasticrun is closed after reading; any other stays open, but is not inherited by executed
  /// programs. A program that a worker executes cannot join by it. Set by elasticrun.
  /// ELASTIC_SECRET_FD.
  int secret_fd = -1;

  /// Encrypt what goes over TCP, between workers and with the rendezvous server: TLS 1.3 with a key
  /// of the job's secret. All of a job, the server too (--encrypt), or none of it; a mix is
  /// refused. Shared memory stays as it is. Set by elasticrun. ELASTIC_ENCRYPT, 0 or 1.
  bool encrypt = false;

  /// The rank wished for in the first view, -1 for none. Set by elasticrun. ELASTIC_SLOT.
  int slot = -1;

  /// The launcher's name for this worker, shown in its status. Set by elasticrun. ELASTIC_LABEL.
  std::string label;

  /// How often the launcher has started this slot before; only informs. Set by elasticrun.
  /// ELASTIC_RESTART.
  int restart = 0;

  /// The backend of collectives; the same on all workers of a job. "native": our own, always there.
  /// "gloo": Gloo's algorithms. "mpi": MPI, under mpirun, with the workers that it started and no
  /// others: a loss is an error. "nccl": NCCL for collectives of tensors on CUDA devices, which go
  /// through host memory under the others; "native" for the rest. Others than "native" are loaded
  /// at run time; `elasticrun --check-build` says which there are. ELASTIC_BACKEND.
  std::string backend = "native";

  /// Folder with the backends that are loaded (libelastic_gloo.so, libelastic_mpi.so, ...). Empty:
  /// where libelastic is. ELASTIC_BACKEND_PATH.
  std::string backend_path;

  /// File of NCCL that the backend "nccl" loads. Empty: libnccl.so.2, where the dynamic linker
  /// finds it. ELASTIC_NCCL_LIBRARY.
  std::string nccl_library;

  /// Under the backend "nccl": what tensors on devices do while NCCL is not ready.
  /// ELASTIC_NCCL_MEANWHILE.
  NcclMeanwhile nccl_meanwhile = NcclMeanwhile::kHost;

  /// Under the backend "nccl": whether the buckets of allreduces are registered with NCCL.
  /// ELASTIC_NCCL_REGISTER.
  NcclRegister nccl_register = NcclRegister::kAuto;

  /// Under the backend "nccl": how the communicator is made after a loss. ELASTIC_NCCL_SHRINK.
  NcclShrink nccl_shrink = NcclShrink::kAuto;

  /// Under the backend "nccl": whether buckets begin while NCCL sums the one before. Members may
  /// differ. ELASTIC_NCCL_OVERLAP.
  NcclOverlap nccl_overlap = NcclOverlap::kAuto;

  /// Under the backend "nccl": least number of CTAs (thread blocks) of a collective, 1 to 64. 0:
  /// NCCL's default. ELASTIC_NCCL_MIN_CTAS.
  int nccl_min_ctas = 0;

  /// Under the backend "nccl": largest number of CTAs of a collective, 1 to 64. 0: NCCL's default.
  /// ELASTIC_NCCL_MAX_CTAS.
  int nccl_max_ctas = 0;

  /// Under the backend "nccl": how NCCL shares the device with other work, since NCCL 2.27.
  /// ELASTIC_NCCL_CTA_POLICY.
  NcclCtaPolicy nccl_cta_policy = NcclCtaPolicy::kDefault;

  /// Under the backend "nccl": the network between hosts, by NCCL's name for it, such as "IB" or
  /// "Socket". Empty: NCCL's choice. ELASTIC_NCCL_NET.
  std::string nccl_net;

  /// The kind of the links between workers. ELASTIC_TRANSPORT.
  Transport transport = Transport::kAuto;

  /// Address that data connections are accepted on. Loopback unless set; "0.0.0.0" or "::" for all
  /// interfaces, which a job over several hosts needs. ELASTIC_BIND.
  std::string bind = "127.0.0.1";

  /// Which of this host's addresses other workers use: networks, addresses and interfaces, such as
  /// "10.0.0.0/16" or "eth1,eth2", the first preferred. Replaces `bind`: data connections are
  /// accepted on the address that is in it, or on all interfaces where there are several. Empty: as
  /// `bind` says. ELASTIC_NETWORK.
  std::string network;

  /// Ports on which data connections are accepted, such as "40000-40099", of which each worker of a
  /// host takes one. Empty: any. ELASTIC_DATA_PORTS.
  std::string data_ports;

  /// TCP connections per link, 1 to 64: a cloud network that caps a single flow wants several. 0:
  /// one on a host; between hosts about 16 for all workers of a host together, of which a measured
  /// number carries data. Where workers differ, nothing is measured, and a link has the number of
  /// the worker that makes it. ELASTIC_TCP_STREAMS.
  int tcp_streams = 0;

  /// Threads of this worker that move the bytes of a large tensor over links of several TCP
  /// connections, the one that calls or the coordinator included. 0: one for every four cores that
  /// a worker of the host has, and at most four. More than one also need several connections
  /// (`tcp_streams`). Workers may differ. ELASTIC_TCP_THREADS.
  int tcp_threads = 0;

  /// Congestion control of TCP connections between workers, such as "reno", "cubic" or "bbr".
  /// Empty: the system's, except between workers on one host, where it is "reno": there is no
  /// network to find out about, and bbr is slower. ELASTIC_TCP_CONGESTION.
  std::string tcp_congestion;

  /// Up to this many members every pair of them has links from the start. With more, a worker
  /// begins a view with the links that the usual algorithms need, 3 to 5 log2(members), and makes
  /// others when it needs them. The same on all workers. ELASTIC_ALL_LINKED.
  int all_linked = 16;

  /// Ring in shared memory per link and direction, a multiple of 64 KiB. With more than 16 workers
  /// on a host the rings are smaller in proportion. ELASTIC_SHM_RING_BYTES.
  std::size_t shm_ring_bytes = std::size_t{1} << 20;

  /// The algorithm of every allreduce. All but kAuto are for comparisons, and turn the short cuts
  /// for small and for allocated tensors off; where the ranks of a view cannot do one, they choose
  /// by size. On all ranks the same, or every operation fails with kMismatch. ELASTIC_ALGORITHM.
  Algorithm algorithm = Algorithm::kAuto;

  /// Pieces in which a large tensor travels, each reduced or forwarded as soon as it has arrived.
  /// They are shorter where the links have little latency. ELASTIC_SEGMENT_BYTES.
  std::size_t segment_bytes = std::size_t{256} << 10;

  /// Named tensors are fused into buckets of at most this size, and of four times this size on
  /// devices under the backend `nccl`; 0: each alone. ELASTIC_BUCKET_BYTES.
  std::size_t bucket_bytes = std::size_t{16} << 20;

  /// Rank 0 tries other sizes of buckets in the first steps and keeps the one with the shortest
  /// steps, beginning with `bucket_bytes`; its log at "info" says what was tried. Then the order in
  /// which elements are added may differ from run to run, though never between ranks.
  /// ELASTIC_AUTOTUNE, 0 or 1.
  bool autotune = false;

  /// Longest wait in `init` for the server and the first view. Longer than the server waits for
  /// missing workers (60 s), so that those that are there begin without them.
  /// ELASTIC_INIT_TIMEOUT_MS.
  std::chrono::milliseconds init_timeout{90000};

  /// Longest wait of a call for a new view after a member was lost; then the call fails with
  /// kTimeout. If the call had begun, this worker leaves the job with it: every further call fails,
  /// but inside `run` the worker joins again (`rejoin`). ELASTIC_VIEW_TIMEOUT_MS.
  std::chrono::milliseconds view_timeout{120000};

  /// Warn about a stall that has lasted for this long: some ranks are in a call, or have submitted
  /// a named tensor, and others have not come. The launcher's log, or without a launcher that of
  /// every rank and of the server, then says which ranks wait in what and which are missing. Also
  /// about calls that have waited for a CUDA device for so long. The smallest value of all ranks
  /// applies.
  /// ELASTIC_STALL_WARNING_MS.
  std::chrono::milliseconds stall_warning{30000};

  /// A stall that has lasted for this long ends the job, with kTimeout and the text of the warning
  /// on every rank. Longer than whatever a rank may rightly do on its own, such as evaluation or
  /// writing a checkpoint. 0: never. The smallest limit of all ranks applies.
  /// ELASTIC_STALL_TIMEOUT_MS, which `elasticrun --stall-timeout-ms` sets.
  std::chrono::milliseconds stall_timeout{0};

  /// Every so many commits the workers tell each other where the time of their step went, which
  /// costs one small allgather; `step_times` then names the slowest, and so does rank 0's log at
  /// "info". 0: never. On all ranks the same. ELASTIC_COMPARE_STEPS.
  int compare_steps = 0;

  /// For FiniteCheck. On all ranks the same. ELASTIC_NON_FINITE.
  NonFinite non_finite = NonFinite::kPass;

  /// A worker that was evicted though it lives (it stalled for too long, or could not be reached),
  /// or that left because a call found no view in time, comes back as a new one: `run` receives the
  /// job's state again and calls the body anew. Otherwise, and outside of `run`, that is an error.
  /// ELASTIC_REJOIN, 0 or 1.
  bool rejoin = true;

  /// The change of the learning rate when workers join or leave, for trainers that take
  /// `elastic::resize_policy()`. On all ranks the same. ELASTIC_RESIZE_POLICY.
  ResizePolicy resize_policy = ResizePolicy::kRamp;

  /// How gradients travel, for trainers that give `elastic::compression()` to a GradientCompressor;
  /// the same on all workers of a job. "none", "f16", "bf16", "int8", "two_bit" or "top_k", with
  /// parameters such as "two_bit:0.5" or "top_k:0.01"; see kCompressionForms. ELASTIC_COMPRESSION.
  std::string compression = "none";

  /// Writes a timeline from the start, as Context::start_timeline does: "trace.json" becomes
  /// trace.WORKER.json. Empty: none. ELASTIC_TIMELINE.
  std::string timeline;

  /// Folder for this worker's latest operations, which are written when it leaves the job in an
  /// error, when a stall is reported, and for `elasticrun ctl dump`. Made when it is needed, if its
  /// parent is there. Empty: flight-JOB in the folder elastic-UID of XDG_RUNTIME_DIR or /tmp.
  /// ELASTIC_FLIGHT_RECORDER.
  std::string flight_recorder;

  /// The lowest level that is written to the log. ELASTIC_LOG_LEVEL.
  LogLevel log_level = LogLevel::kWarn;
};

/// Sets one option from text, for programs that have its name only at run time. The names and
/// values are those of the environment variables, without ELASTIC_ and in small letters:
/// "bucket_bytes" to "16M", "view_timeout_ms" to "5000".
/// \throws Error kInvalidArgument, changing nothing: there is no such option (the message has the
///   nearest name), or the value is not allowed (it says what is).
ELASTIC_API void set_option(Options& options, std::string_view name, std::string_view value);

}  // namespace elastic
