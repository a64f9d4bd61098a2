// Collectives, as streams make them, and groups of them.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <nccl.h>
#include <thread>
#include <utility>
#include <vector>

#include "elastic/types.hpp"
#include "nccl/stand_in.hpp"
#include "nccl/stand_in_driver.hpp"
#include "nccl/stand_in_fabric.hpp"
#include "nccl/stand_in_library.hpp"

using elastic::DType;
using elastic::ReduceOp;
using elastic::collectives::nccl::NcclCounts;
using elastic::collectives::nccl::NcclScript;
using elastic::nccl_stand_in::Entered;
using elastic::nccl_stand_in::Fabric;
using elastic::nccl_stand_in::inside;
using elastic::nccl_stand_in::launch_host_func;
using elastic::nccl_stand_in::Library;
using elastic::nccl_stand_in::library;
using elastic::nccl_stand_in::Lock;
using elastic::nccl_stand_in::requires_idle;

namespace {

DType dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return DType::kI8;
    case ncclUint8:
      return DType::kU8;
    case ncclInt32:
      return DType::kI32;
    case ncclUint32:
      return DType::kU32;
    case ncclUint64:
      return DType::kU64;
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

  /// After an abort NCCL may have left anything in the output. It does not write to a root's own
  /// tensor.
  void spoil() const {
    const bool is_own = from == to && from_bytes == to_bytes;
    std::byte* const written = is_own ? nullptr : inside(to, to_bytes);
    if (written != nullptr) std::memset(written, 0xee, to_bytes);
  }

  static void run(void* task) {
    const std::unique_ptr<Task> self(static_cast<Task*>(task));
    const std::byte* const read =
        self->from_bytes > 0 ? inside(self->from, self->from_bytes) : nullptr;
    std::byte* const written = inside(self->to, self->to_bytes);
    if ((self->from_bytes > 0 && read == nullptr) || written == nullptr) {
      const Lock lock(library().mutex);
      library().violations.push_back("a collective of what is no memory of a device");
    } else if (!self->works || !self->collective(*self->comm->fabric, read, written)) {
      self->spoil();
    }
    // It spins on the device until it is called off, as a kernel that hangs does.
    while (!self->ends && !self->comm->called_off) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    --self->comm->on_streams;
  }
};

/// Input and output may overlap only in NCCL's in-place forms: the smaller of the two is this
/// rank's block of the larger, or they are the same.
void note_overlap(const Task& task, int rank) {
  const auto* const from = static_cast<const std::byte*>(task.from);
  const auto* const to = static_cast<const std::byte*>(task.to);
  if (from + task.from_bytes <= to || to + task.to_bytes <= from) return;
  const auto before = [rank](std::size_t block) { return static_cast<std::size_t>(rank) * block; };
  const bool in_place = task.from_bytes < task.to_bytes   ? from == to + before(task.from_bytes)
                        : task.from_bytes > task.to_bytes ? to == from + before(task.to_bytes)
                                                          : from == to;
  if (!in_place) library().violations.emplace_back("an input that overlaps the output");
}

/// If one rank's result comes to registered memory, so do those of all.
void note_memory(ncclComm& comm, const void* to) {
  const auto* const at = static_cast<const std::byte*>(to);
  auto found = comm.registered.upper_bound(at);
  const bool is_registered =
      found != comm.registered.begin() && at < (--found)->first + found->second;
  Library& the = library();
  if (is_registered) ++the.counts.in_registered;
  // No rank is so far behind another one.
  constexpr std::uint64_t kKept = 64;
  the.in_registered.erase({comm.id, comm.allreduces - kKept});
  const auto [first, is_first] =
      the.in_registered.try_emplace({comm.id, comm.allreduces++}, is_registered);
  if (!is_first && first->second != is_registered) {
    the.violations.emplace_back("an allreduce in memory that some ranks have registered");
  }
}

/// The tasks of a thread between ncclGroupStart and ncclGroupEnd.
struct Group {
  std::vector<std::unique_ptr<Task>> tasks;
  ncclResult_t failure = ncclSuccess;
};
/// The open groups by thread; guarded by the library's lock.
std::map<std::thread::id, Group>& groups() {
  static auto* const the = new std::map<std::thread::id, Group>;
  return *the;
}
/// The open group of this thread; null if there is none.
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
  requires_idle(*comm, call);
  const Entered entered(lock, comm, call);
  note_overlap(task, comm->rank);
  ++(library().counts.*counted);
  library().counts.bytes += task.from_bytes;
  const NcclScript& script = library().scripts[comm->rank];
  const int number = library().collectives[comm->rank]++;
  const bool works = number < script.works_before;
  const Allreduce how = works ? Allreduce::kWorks : script.allreduce;
  if (how == Allreduce::kFailsAtOnce) {
    if (Group* const group = open_group()) group->failure = ncclSystemError;
    return ncclSystemError;
  }
  if (how == Allreduce::kFailsLater) comm->fails = true;
  if (number == script.connects_in) {
    comm->connects = true;
    ++library().connections[comm->id];
  }
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

}  // namespace

NCCL_EXPORT ncclResult_t ncclGroupStart() {
  const Lock lock(library().mutex);
  const bool is_first = groups().try_emplace(std::this_thread::get_id()).second;
  if (!is_first) library().violations.emplace_back("a group in a group");
  ++library().open_groups;
  return ncclSuccess;
}

NCCL_EXPORT ncclResult_t ncclGroupEnd() {
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

NCCL_EXPORT ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count,
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

NCCL_EXPORT ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count,
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

NCCL_EXPORT ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count,
                                       ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = count * elastic::size_of(dtype_of(type));
  const auto collective = [=](Fabric& fabric, const std::byte* in, std::byte* out) {
    return fabric.allgather(in, out, bytes, comm->called_off);
  };
  const std::size_t all = bytes * static_cast<std::size_t>(comm->size);
  return queue("allgather", &NcclCounts::allgathers, {collective, from, bytes, to, all}, comm,
               stream);
}

NCCL_EXPORT ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count,
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
