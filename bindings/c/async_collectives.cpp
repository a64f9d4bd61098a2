// Asynchronous collectives, in program order or under a name, and what is done with them.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "pending_work.hpp"

using namespace elastic::c;

namespace {

using Blocks = elastic::Pending<elastic::GatheredBlocks>;
using Part = elastic::Pending<elastic::ScatteredPart>;
using Received = elastic::Pending<elastic::ReceivedMessage>;

std::vector<elastic::Work> works_of(const elastic_work* const* works, size_t count,
                                    const char* call) {
  if (count > 0) require(works, call, "works");
  std::vector<elastic::Work> all;
  for (size_t i = 0; i < count; ++i) {
    require(works[i], call, "one of the works");
    all.push_back(works[i]->value);
  }
  return all;
}

}  // namespace

elastic_code elastic_allreduce_async(elastic_context* context, const char* name,
                                     const elastic_tensor* tensors, size_t count, elastic_op op,
                                     void* stream, elastic_work** work) {
  constexpr const char* kCall = "elastic_allreduce_async";
  return guarded([&] {
    require(work, kCall, "work");
    const auto views = tensors_of(tensors, count, kCall);
    elastic::Collectives& its = collectives_of(context);
    *work = new elastic_work{
        name != nullptr ? its.grouped_allreduce_async(name, views, op_of(op, kCall), {stream})
                        : its.grouped_allreduce_async(views, op_of(op, kCall), {stream})};
  });
}

elastic_code elastic_scaled_allreduce_async(elastic_context* context, const char* name,
                                            const elastic_tensor* tensors, size_t count,
                                            elastic_op op, double before, double after,
                                            void* stream, elastic_work** work) {
  constexpr const char* kCall = "elastic_scaled_allreduce_async";
  return guarded([&] {
    require(name, kCall, "name");
    require(work, kCall, "work");
    *work = new elastic_work{collectives_of(context).grouped_allreduce_async(
        name, tensors_of(tensors, count, kCall), op_of(op, kCall), elastic::Scale(before, after),
        {stream})};
  });
}

elastic_code elastic_broadcast_async(elastic_context* context, const char* name,
                                     const elastic_tensor* tensor, elastic_root root, void* stream,
                                     elastic_work** work) {
  constexpr const char* kCall = "elastic_broadcast_async";
  return guarded([&] {
    require(work, kCall, "work");
    const elastic::TensorView view = tensor_of(tensor, kCall, "tensor");
    elastic::Collectives& its = collectives_of(context);
    *work =
        new elastic_work{name != nullptr ? its.broadcast_async(name, view, root_of(root), {stream})
                                         : its.broadcast_async(view, root_of(root), {stream})};
  });
}

elastic_code elastic_allgather_async(elastic_context* context, const char* name,
                                     const elastic_tensor* block, const elastic_tensor* out,
                                     void* stream, elastic_work** work) {
  constexpr const char* kCall = "elastic_allgather_async";
  return guarded([&] {
    require(work, kCall, "work");
    const elastic::TensorView from = tensor_of(block, kCall, "block");
    const elastic::TensorView to = tensor_of(out, kCall, "out");
    elastic::Collectives& its = collectives_of(context);
    *work = pending([&] {
      return name != nullptr ? its.allgather_async(name, from, to, {stream})
                             : its.allgather_async(from, to, {stream});
    });
  });
}

elastic_code elastic_reduce_scatter_async(elastic_context* context, const char* name,
                                          const elastic_tensor* data, const elastic_tensor* out,
                                          elastic_op op, void* stream, elastic_work** work) {
  constexpr const char* kCall = "elastic_reduce_scatter_async";
  return guarded([&] {
    require(work, kCall, "work");
    const elastic::TensorView from = tensor_of(data, kCall, "data");
    const elastic::TensorView to = tensor_of(out, kCall, "out");
    elastic::Collectives& its = collectives_of(context);
    *work = pending([&] {
      return name != nullptr ? its.reduce_scatter_async(name, from, to, op_of(op, kCall), {stream})
                             : its.reduce_scatter_async(from, to, op_of(op, kCall), {stream});
    });
  });
}

elastic_code elastic_alltoall_async(elastic_context* context, const char* name,
                                    const elastic_blocks* blocks, const elastic_tensor* out,
                                    void* stream, elastic_work** work) {
  constexpr const char* kCall = "elastic_alltoall_async";
  return guarded([&] {
    require(work, kCall, "work");
    const elastic::BlocksView from = blocks_of(blocks, kCall);
    const elastic::TensorView to = tensor_of(out, kCall, "out");
    elastic::Collectives& its = collectives_of(context);
    *work = pending([&] {
      return name != nullptr ? its.alltoall_async(name, from, to)
                             : its.alltoall_async(from, to, {stream});
    });
  });
}

elastic_code elastic_work_wait(const elastic_work* work, elastic_contributors* contributors) {
  return guarded([&] {
    require(work, "elastic_work_wait", "work");
    fill(contributors, work->value.wait());
  });
}

elastic_code elastic_work_wait_on_stream(const elastic_work* work, void* stream,
                                         elastic_contributors* contributors) {
  return guarded([&] {
    require(work, "elastic_work_wait_on_stream", "work");
    fill(contributors, work->value.wait(elastic::CudaStream{stream}));
  });
}

elastic_code elastic_work_wait_for(const elastic_work* work, uint64_t nanoseconds, int* complete) {
  return guarded([&] {
    require(work, "elastic_work_wait_for", "work");
    require(complete, "elastic_work_wait_for", "complete");
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    const auto most = static_cast<std::int64_t>(std::min<std::uint64_t>(nanoseconds, kMost));
    *complete = work->value.wait_for(std::chrono::nanoseconds(most)) ? 1 : 0;
  });
}

int elastic_work_is_complete(const elastic_work* work) {
  return work != nullptr && work->value.ready() ? 1 : 0;
}
void elastic_work_destroy(elastic_work* work) {
  delete work;
}

elastic_code elastic_work_blocks(const elastic_work* work, size_t* gathered, size_t* counts,
                                 size_t room) {
  return guarded([&] {
    const auto blocks = result_of<Blocks>(work, "elastic_work_blocks").wait();
    fill(gathered, blocks.count);
    fill_counts(counts, room, blocks.counts);
  });
}

elastic_code elastic_work_part(const elastic_work* work, size_t* count, size_t* offset) {
  return guarded([&] {
    const auto part = result_of<Part>(work, "elastic_work_part").wait();
    fill(count, part.count);
    fill(offset, part.offset);
  });
}

elastic_code elastic_work_received(const elastic_work* work, size_t* received) {
  return guarded(
      [&] { fill(received, result_of<Received>(work, "elastic_work_received").wait().count); });
}

elastic_code elastic_work_then(const elastic_work* work, elastic_when_complete function,
                               void* user) {
  constexpr const char* kCall = "elastic_work_then";
  return guarded([&] {
    require(work, kCall, "work");
    require(reinterpret_cast<const void*>(function), kCall, "function");
    // The program may destroy its own handle before.
    work->value.then(
        [function, user, copy = *work](const elastic::Work& /*work*/) { function(user, &copy); });
  });
}

elastic_code elastic_wait_any(const elastic_work* const* works, size_t count, size_t* index) {
  constexpr const char* kCall = "elastic_wait_any";
  return guarded([&] { fill(index, elastic::wait_any(works_of(works, count, kCall))); });
}

elastic_code elastic_wait_all(const elastic_work* const* works, size_t count) {
  constexpr const char* kCall = "elastic_wait_all";
  return guarded([&] { elastic::wait_all(works_of(works, count, kCall)); });
}
