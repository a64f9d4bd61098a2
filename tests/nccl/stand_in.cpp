#include "nccl/stand_in.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "nccl/stand_in_fabric.hpp"

using elastic::DType;
using elastic::ReduceOp;
using elastic::collectives::nccl::NcclCounts;
using elastic::collectives::nccl::NcclScript;
using elastic::collectives::nccl::NcclStandIn;
using elastic::nccl_stand_in::Fabric;

/// A communicator. Kept until `reset`, so that its use after its end is seen.
struct ncclComm {
  std::string id;
  int rank = 0;
  int size = 0;
  std::string under_way;  // the call
  bool gone = false;      // no call may come any more
  bool ended = false;     // and it has given everything back
  int polls_to_go = 0;    // of what is in progress
  bool never_done = false;
  bool fails = false;
  std::map<const std::byte*, std::size_t> registered;
  std::uint64_t allreduces = 0;
  std::unique_ptr<Fabric> fabric;
  std::atomic<bool> called_off{false};
  std::atomic<int> on_streams{0};  // collectives that streams have to make or are making
};

namespace {

constexpr int kPolls = 3;

struct Library {
  std::mutex mutex;
  std::condition_variable released_or_more;
  bool released = false;
  std::map<int, NcclScript> scripts;
  std::map<int, int> failures;
  std::map<int, int> collectives;  // by rank
  std::vector<std::unique_ptr<ncclComm>> comms;
  int open_groups = 0;  // of all threads
  /// By communicator and number of the allreduce: whether a rank's result came to registered
  /// memory.
  std::map<std::pair<std::string, std::uint64_t>, bool> in_registered;
  NcclCounts counts;
  std::vector<std::string> violations;
  std::function<void()> on_abort;
  std::function<void(int)> on_poll;
};

Library& library() {
  static Library the;
  return the;
}

using Lock = std::unique_lock<std::mutex>;

void wait_for_release(Lock& lock) {
  ++library().counts.waiting;
  library().released_or_more.wait(lock, [] { return library().released; });
  --library().counts.waiting;
}

/// A call on a communicator; notes what is not allowed.
class Entered {
 public:
  Entered(Lock& lock, ncclComm* comm, const std::string& call) : lock_(lock), comm_(comm) {
    auto& violations = library().violations;
    if (comm->gone) violations.push_back(call + " on one that is gone");
    if (!comm->under_way.empty()) violations.push_back(call + " during " + comm->under_way);
    comm->under_way = call;
    lock_.unlock();  // here others would come in, were they let
    lock_.lock();
  }
  ~Entered() { comm_->under_way.clear(); }

 private:
  Lock& lock_;
  ncclComm* const comm_;
};

bool in_progress(const ncclComm& comm) {
  if (comm.never_done || comm.polls_to_go > 0) return true;
  return !comm.fabric->all_came();
}

/// Nothing but polls and aborts while something is in progress.
void needs_quiet(const ncclComm& comm, const char* call) {
  if (in_progress(comm)) library().violations.push_back(std::string(call) + " while in progress");
}

int launch(ncclComm* comm, bool never_done) {
  Lock lock(library().mutex);
  needs_quiet(*comm, "launch");
  const Entered entered(lock, comm, "launch");
  ++library().counts.launches;
  comm->never_done = never_done;
  comm->polls_to_go = kPolls;
  return ncclInProgress;
}

int launch_and_hang(ncclComm* comm) {
  Lock lock(library().mutex);
  const Entered entered(lock, comm, "launch");
  ++library().counts.launches;
  wait_for_release(lock);
  return ncclSuccess;
}

void reset() {
  const Lock lock(library().mutex);
  Library& the = library();
  the.released = false;
  the.scripts.clear();
  the.failures.clear();
  the.collectives.clear();
  the.comms.clear();
  the.in_registered.clear();
  the.counts = {};
  the.violations.clear();
  the.on_abort = nullptr;
  the.on_poll = nullptr;
}

void script(int rank, const NcclScript& script) {
  const Lock lock(library().mutex);
  library().scripts[rank] = script;
}

void fail(int rank, int result) {
  const Lock lock(library().mutex);
  library().failures[rank] = result;
}

void release() {
  const Lock lock(library().mutex);
  library().released = true;
  library().released_or_more.notify_all();
}

void on_abort(std::function<void()> call) {
  const Lock lock(library().mutex);
  library().on_abort = std::move(call);
}

void on_poll(std::function<void(int)> call) {
  const Lock lock(library().mutex);
  library().on_poll = std::move(call);
}

NcclCounts counts() {
  const Lock lock(library().mutex);
  return library().counts;
}

std::vector<std::string> violations() {
  const Lock lock(library().mutex);
  std::vector<std::string> all = library().violations;
  if (library().open_groups != 0) all.emplace_back("a group that was not ended");
  return all;
}

void* driver() {
  const char* const file = std::getenv("NCCL_STAND_IN_DRIVER");
  static void* const the = ::dlopen(file == nullptr ? "libcuda.so.1" : file, RTLD_NOW | RTLD_LOCAL);
  return the;
}

int launch_host_func(cudaStream_t stream, void (*function)(void*), void* data) {
  using Call = int (*)(void*, void (*)(void*), void*);
  static const auto the = reinterpret_cast<Call>(::dlsym(driver(), "cuLaunchHostFunc"));
  return the(stream, function, data);
}

std::byte* inside(const void* address, std::size_t bytes) {
  using Call = void* (*)(unsigned long long, std::size_t);
  static const auto the = reinterpret_cast<Call>(::dlsym(driver(), "cuda_stand_in_inside"));
  return static_cast<std::byte*>(the(reinterpret_cast<std::uintptr_t>(address), bytes));
}

DType dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return DType::kI8;
    case ncclUint8:
      return DType::kU8;
    case ncclInt32:
      return DType::kI32;
    case ncclInt64:
      return DType::kI64;
    case ncclFloat16:
      return DType::kF16;
    case ncclBfloat16:
      return DType::kBF16;
    case ncclFloat64:
      return DType::kF64;
    default:
      return DType::kF32;
  }
}

ReduceOp op_of(ncclRedOp_t op) {
  switch (op) {
    case ncclProd:
      return ReduceOp::kProduct;
    case ncclMin:
      return ReduceOp::kMin;
    case ncclMax:
      return ReduceOp::kMax;
    default:
      return ReduceOp::kSum;
  }
}

using Allreduce = NcclScript::Allreduce;

/// A collective as a stream makes it.
struct Task {
  std::function<bool(Fabric& fabric, const std::byte* from, std::byte* to)> collective;
  const void* from;
  std::size_t from_bytes;  // 0: not read
  void* to;
  std::size_t to_bytes;
  bool works = true;
  bool ends = true;
  ncclComm* comm = nullptr;
  cudaStream_t stream = nullptr;

  static void run(void* task) {
    const std::unique_ptr<Task> self(static_cast<Task*>(task));
    const std::byte* const read =
        self->from_bytes > 0 ? inside(self->from, self->from_bytes) : nullptr;
    std::byte* const written = inside(self->to, self->to_bytes);
    if ((self->from_bytes > 0 && read == nullptr) || written == nullptr) {
      const Lock lock(library().mutex);
      library().violations.push_back("a collective of what is no memory of a device");
    } else if (self->works) {
      self->collective(*self->comm->fabric, read, written);
    }
    // As a kernel that hangs does, it spins on the device until it is called off.
    while (!self->ends && !self->comm->called_off) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    --self->comm->on_streams;
  }
};

/// If one rank's result comes to registered memory, so do those of all.
void note_memory(ncclComm& comm, const void* to) {
  const auto* const at = static_cast<const std::byte*>(to);
  auto found = comm.registered.upper_bound(at);
  const bool is_registered =
      found != comm.registered.begin() && at < (--found)->first + found->second;
  Library& the = library();
  if (is_registered) ++the.counts.in_registered;
  const auto [first, is_first] =
      the.in_registered.try_emplace({comm.id, comm.allreduces++}, is_registered);
  if (!is_first && first->second != is_registered) {
    the.violations.emplace_back("an allreduce in memory that some ranks have registered");
  }
}

/// What a thread has begun together, and not ended.
struct Group {
  std::vector<std::unique_ptr<Task>> tasks;
  ncclResult_t failure = ncclSuccess;
};
/// By thread; with the library's lock.
std::map<std::thread::id, Group>& groups() {
  static std::map<std::thread::id, Group> the;
  return the;
}
/// That of this thread; null: none.
Group* open_group() {
  const auto found = groups().find(std::this_thread::get_id());
  return found == groups().end() ? nullptr : &found->second;
}

ncclResult_t begin(std::unique_ptr<Task> task) {
  ncclComm& comm = *task->comm;
  comm.polls_to_go = 1;
  ++comm.on_streams;
  if (launch_host_func(task->stream, &Task::run, task.get()) != 0) return ncclUnhandledCudaError;
  (void)task.release();
  return ncclInProgress;
}

/// Queues it, as the rank's script says; in a group, for its end.
ncclResult_t queue(const char* call, int NcclCounts::*counted, Task task, ncclComm* comm,
                   cudaStream_t stream) {
  Lock lock(library().mutex);
  needs_quiet(*comm, call);
  const Entered entered(lock, comm, call);
  ++(library().counts.*counted);
  library().counts.bytes += task.from_bytes;
  const NcclScript& script = library().scripts[comm->rank];
  const bool works = library().collectives[comm->rank]++ < script.works_before;
  const Allreduce how = works ? Allreduce::kWorks : script.allreduce;
  if (how == Allreduce::kFailsAtOnce) {
    if (Group* const group = open_group()) group->failure = ncclSystemError;
    return ncclSystemError;
  }
  if (how == Allreduce::kFailsLater) comm->fails = true;
  task.works = how == Allreduce::kWorks || how == Allreduce::kHangsAtEnd;
  task.ends = how == Allreduce::kWorks;
  task.comm = comm;
  task.stream = stream;
  auto queued = std::make_unique<Task>(std::move(task));
  Group* const group = open_group();
  if (group == nullptr) return begin(std::move(queued));
  group->tasks.push_back(std::move(queued));
  return ncclSuccess;
}

ncclResult_t progress(ncclComm& comm) {
  const auto failure = library().failures.find(comm.rank);
  if (failure != library().failures.end()) return static_cast<ncclResult_t>(failure->second);
  if (comm.fails && comm.polls_to_go == 0) return ncclRemoteError;
  if (!in_progress(comm)) return ncclSuccess;
  if (comm.polls_to_go > 0) --comm.polls_to_go;
  return ncclInProgress;
}

}  // namespace

#define EXPORT extern "C" [[gnu::visibility("default")]]

EXPORT const NcclStandIn nccl_stand_in = {reset,   script, fail,       release, on_abort,
                                          on_poll, counts, violations, launch,  launch_and_hang};

EXPORT ncclResult_t ncclGetVersion(int* version) {
  const char* const told = std::getenv("NCCL_STAND_IN_VERSION");
  *version = told == nullptr ? 22809 : std::atoi(told);
  return ncclSuccess;
}

EXPORT const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "unhandled system error";
}

EXPORT const char* ncclGetLastError(ncclComm_t) {
  return "as it was told to";
}

EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Lock lock(library().mutex);
  *id = {};
  static int serial = 0;
  ++library().counts.ids;
  const std::string text = std::to_string(::getpid()) + "-" + std::to_string(++serial);
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}

EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int size, ncclUniqueId id, int rank,
                                           ncclConfig_t* config) {
  Lock lock(library().mutex);
  Library& the = library();
  ++the.counts.inits;
  if (config == nullptr || config->blocking != 0) the.violations.push_back("an init that blocks");
  const NcclScript script = the.scripts[rank];
  if (script.init == NcclScript::Init::kNeverReturns) wait_for_release(lock);
  if (script.init == NcclScript::Init::kFailsAtOnce)
    return static_cast<ncclResult_t>(script.failure);
  auto comm = std::make_unique<ncclComm>();
  comm->id = id.internal;
  comm->rank = rank;
  comm->size = size;
  comm->polls_to_go = kPolls;
  comm->never_done = script.init == NcclScript::Init::kNeverDone;
  comm->fails = script.init == NcclScript::Init::kFailsLater;
  comm->fabric = std::make_unique<Fabric>(comm->id, rank, size);
  *made = comm.get();
  the.comms.push_back(std::move(comm));
  return ncclInProgress;
}

EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  Lock lock(library().mutex);
  const Entered entered(lock, comm, "poll");
  if (const auto call = library().on_poll) {
    lock.unlock();
    call(comm->rank);
    lock.lock();
  }
  *state = progress(*comm);
  return ncclSuccess;
}

EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Lock lock(library().mutex);
  needs_quiet(*comm, "destroy");
  const Entered entered(lock, comm, "destroy");
  comm->gone = true;
  comm->ended = true;
  return ncclSuccess;
}

EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Lock lock(library().mutex);
  const Entered entered(lock, comm, "abort");
  ++library().counts.aborts;
  comm->gone = true;
  comm->called_off = true;
  if (const auto call = library().on_abort) {
    lock.unlock();
    call();
    lock.lock();
  }
  if (library().scripts[comm->rank].abort_waits) wait_for_release(lock);
  lock.unlock();
  // The driver tells of no event when a stream is done.
  while (comm->on_streams > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  lock.lock();
  comm->ended = true;
  return ncclSuccess;
}

EXPORT ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes) {
  using Call = int (*)(unsigned long long*, std::size_t);
  static const auto alloc = reinterpret_cast<Call>(::dlsym(driver(), "cuMemAlloc_v2"));
  unsigned long long made = 0;
  if (alloc(&made, bytes) != 0) return ncclUnhandledCudaError;
  *memory = reinterpret_cast<void*>(made);
  return ncclSuccess;
}

EXPORT ncclResult_t ncclMemFree(void* memory) {
  using Call = int (*)(unsigned long long);
  static const auto free = reinterpret_cast<Call>(::dlsym(driver(), "cuMemFree_v2"));
  {
    const Lock lock(library().mutex);
    for (const auto& comm : library().comms) {
      if (comm->ended || !comm->registered.contains(static_cast<std::byte*>(memory))) continue;
      library().violations.emplace_back("memory is freed that is registered");
    }
  }
  return free(reinterpret_cast<std::uintptr_t>(memory)) == 0 ? ncclSuccess : ncclUnhandledCudaError;
}

EXPORT ncclResult_t ncclCommRegister(ncclComm_t comm, void* memory, std::size_t bytes,
                                     void** handle) {
  Lock lock(library().mutex);
  needs_quiet(*comm, "register");
  const Entered entered(lock, comm, "register");
  ++library().counts.registrations;
  if (library().scripts[comm->rank].refuses_memory) return ncclInvalidUsage;
  const auto [at, is_new] = comm->registered.emplace(static_cast<std::byte*>(memory), bytes);
  if (!is_new) library().violations.emplace_back("memory is registered twice");
  *handle = memory;
  return ncclSuccess;
}

EXPORT ncclResult_t ncclGroupStart() {
  const Lock lock(library().mutex);
  const bool is_first = groups().try_emplace(std::this_thread::get_id()).second;
  if (!is_first) library().violations.emplace_back("a group in a group");
  ++library().open_groups;
  return ncclSuccess;
}

EXPORT ncclResult_t ncclGroupEnd() {
  Lock lock(library().mutex);
  if (open_group() == nullptr) {
    library().violations.emplace_back("the end of no group");
    return ncclInvalidUsage;
  }
  Group ended = std::move(*open_group());
  groups().erase(std::this_thread::get_id());
  --library().open_groups;
  ++library().counts.groups;
  if (ended.failure != ncclSuccess || ended.tasks.empty()) return ended.failure;
  const Entered entered(lock, ended.tasks.front()->comm, "group end");
  for (auto& task : ended.tasks) {
    if (const ncclResult_t begun = begin(std::move(task)); begun != ncclInProgress) return begun;
  }
  return ncclInProgress;
}

EXPORT ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count,
                                  ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                  cudaStream_t stream) {
  {
    const Lock lock(library().mutex);
    note_memory(*comm, to);
  }
  const DType dtype = dtype_of(type);
  const std::size_t bytes = count * elastic::size_of(dtype);
  const auto collective = [=](Fabric& fabric, const std::byte* in, std::byte* out) {
    return fabric.allreduce(in, out, count, dtype, op_of(op), comm->called_off);
  };
  return queue("allreduce", &NcclCounts::allreduces, {collective, from, bytes, to, bytes}, comm,
               stream);
}

EXPORT ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count,
                                  ncclDataType_t type, int root, ncclComm_t comm,
                                  cudaStream_t stream) {
  const std::size_t bytes = count * elastic::size_of(dtype_of(type));
  const auto collective = [=](Fabric& fabric, const std::byte* in, std::byte* out) {
    return fabric.broadcast(in, out, bytes, root, comm->called_off);
  };
  const std::size_t sent = comm->rank == root ? bytes : 0;
  return queue("broadcast", &NcclCounts::broadcasts, {collective, from, sent, to, bytes}, comm,
               stream);
}

EXPORT ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count,
                                  ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = count * elastic::size_of(dtype_of(type));
  const auto collective = [=](Fabric& fabric, const std::byte* in, std::byte* out) {
    return fabric.allgather(in, out, bytes, comm->called_off);
  };
  const std::size_t all = bytes * static_cast<std::size_t>(comm->size);
  return queue("allgather", &NcclCounts::allgathers, {collective, from, bytes, to, all}, comm,
               stream);
}

EXPORT ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count,
                                      ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                      cudaStream_t stream) {
  const DType dtype = dtype_of(type);
  const std::size_t bytes = count * elastic::size_of(dtype);
  const auto collective = [=](Fabric& fabric, const std::byte* in, std::byte* out) {
    return fabric.reduce_scatter(in, out, count, dtype, op_of(op), comm->called_off);
  };
  const std::size_t all = bytes * static_cast<std::size_t>(comm->size);
  return queue("reduce_scatter", &NcclCounts::reduce_scatters, {collective, from, all, to, bytes},
               comm, stream);
}
