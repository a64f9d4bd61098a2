#pragma once

#include "base/status.hpp"
#include "collectives/backend/buffer.hpp"
#include "elastic/state.hpp"
#include "runtime/control.hpp"

namespace elastic::runtime {

/// Allocates memory for a state of about `bytes` bytes, with its pages in place. The members wait
/// while a joiner receives the state, and the kernel takes longer to hand out a page than a donor
/// takes to fill it.
collectives::Buffer make_room(std::size_t bytes);

struct Synchronisation {
  std::uint64_t layout = 0;  ///< hash of this worker's layout, the options included
  /// What this worker does, such as "has called elastic::run": for the error of all ranks if some
  /// of them call something else.
  const char* doing = "";
};

/// Makes `state` the same on all members. All members call it at the same place in the sequence
/// of lane 0's operations. Members that have the job's state keep it and send it; the others
/// receive it. If no member has it yet, the state of rank 0 becomes the job's.
///
/// It consists of three operations in lane 0, the unnamed lane:
///
/// - an allgather of the image's size and of a hash of the layout, options included, which must be
///   equal: nothing is taken from a worker with other entries;
/// - the transfer, in which each donor sends a share of the bytes;
/// - an allgather of the hashes of all entries, which must be equal.
///
/// Errors, and their effect:
///
/// - kRefused, if the layouts differ: the job fails on every worker. The server compares the
///   layouts, too, and its error names the difference. But training may begin before it has
///   compared them, so the members compare their hashes first.
/// - kMismatch, if the hashes of entries differ (the error names the ranks and the entry), or if
///   the workers' calls do not match when the job starts: the job fails with this error.
/// - kMismatch, if an object refuses the state (it names rank, entry and exception): all members
///   learn of it by the allgather. If no member had the state before, the job fails. Otherwise the
///   worker that refused leaves the job, and the others go on.
/// - The death of a member changes nothing for the others; if donors die, others give.
///
/// A receiver collects the state in `room` if that is large enough, otherwise in new memory.
Status synchronise(State& state, const Synchronisation& how, Control& control,
                   collectives::Buffer room = {});

}  // namespace elastic::runtime
