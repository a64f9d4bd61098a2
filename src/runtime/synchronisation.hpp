#pragma once

#include "base/status.hpp"
#include "collectives/backend/buffer.hpp"
#include "elastic/state.hpp"
#include "runtime/control.hpp"

namespace elastic::runtime {

/// Where a joiner can receive a state of about so many bytes, with its pages in place: the members
/// stand still while it does, and the kernel takes longer to hand out a page than a donor to fill
/// it.
collectives::Buffer make_room(std::size_t bytes);

/// Makes `state` the same on all members: everybody calls it between the same two operations of the
/// unnamed lane. Members that have the job's state keep it and give it; the others take it. Where
/// nobody has it yet, that of rank 0 becomes the job's.
///
/// Three operations: a broadcast of the size, the transfer, and an allgather of the hashes
/// of all entries, which must be equal: otherwise kMismatch, naming the ranks and the entry, and
/// the job fails with that. It also fails where workers cannot do these operations together at the
/// start (kMismatch). Where an object refuses the state, the allgather tells all members: if nobody
/// had the state before, the job fails (kMismatch), naming rank, entry and exception; otherwise
/// this worker leaves the job with that, and the others go on. A member that dies meanwhile changes
/// nothing for the others; when donors die, others give.
///
/// Whoever takes a state collects it in `room` if that is large enough, otherwise in fresh memory.
///
/// `doing` is what this worker does, "has called elastic::run": for the error that all ranks get
/// where some of them call something else.
Status synchronise(State& state, Control& control, const char* doing,
                   collectives::Buffer room = {});

}  // namespace elastic::runtime
