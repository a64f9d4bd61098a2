// Messages between two members of a job or of a group.
#include <utility>

#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "pending_work.hpp"

using namespace elastic::c;

elastic_code elastic_send(elastic_context* context, const elastic_tensor* tensor, elastic_root to,
                          int tag, elastic_contributors* contributors) {
  return guarded([&] {
    fill(contributors, collectives_of(context).send(tensor_of(tensor, "elastic_send", "tensor"),
                                                    root_of(to), tag));
  });
}

elastic_code elastic_recv(elastic_context* context, const elastic_tensor* out, elastic_root from,
                          int tag, size_t* received, elastic_contributors* contributors) {
  return guarded([&] {
    elastic::ReceivedMessage message =
        collectives_of(context).recv(tensor_of(out, "elastic_recv", "out"), root_of(from), tag);
    fill(received, message.count);
    fill(contributors, std::move(message.contributors));
  });
}

elastic_code elastic_send_async(elastic_context* context, const elastic_tensor* tensor,
                                elastic_root to, int tag, elastic_work** work) {
  constexpr const char* kCall = "elastic_send_async";
  return guarded([&] {
    require(work, kCall, "work");
    *work = new elastic_work{
        collectives_of(context).send_async(tensor_of(tensor, kCall, "tensor"), root_of(to), tag)};
  });
}

elastic_code elastic_recv_async(elastic_context* context, const elastic_tensor* out,
                                elastic_root from, int tag, elastic_work** work) {
  constexpr const char* kCall = "elastic_recv_async";
  return guarded([&] {
    require(work, kCall, "work");
    const elastic::TensorView room = tensor_of(out, kCall, "out");
    *work = pending([&] { return collectives_of(context).recv_async(room, root_of(from), tag); });
  });
}
