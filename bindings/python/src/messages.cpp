// Messages between two members of a job or of a group.
#include <cstddef>
#include <utility>

#include "bindings.hpp"
#include "repr.hpp"
#include "tensors.hpp"
#include "waiting.hpp"
#include "work.hpp"

namespace elastic::python {

namespace {

Contributors send(Collectives& members, nb::handle tensor, const Root& to, int tag) {
  const Tensor given = tensor_of(tensor, Access::kRead, "send", "tensor");
  return waiting([&] { return members.send(given.view, to, tag); });
}

ReceivedMessage recv(Collectives& members, nb::handle out, const Root& source, int tag) {
  const Tensor room = tensor_of(out, Access::kWrite, "recv", "out");
  return waiting([&] { return members.recv(room.view, source, tag); });
}

PendingWork send_async(Collectives& members, nb::handle tensor, const Root& to, int tag) {
  Tensor given = kept(tensor_of(tensor, Access::kRead, "send_async", "tensor"));
  Work work = waiting([&] { return members.send_async(given.view, to, tag); });
  return PendingWork(std::move(work), {std::move(given)});
}

/// A Pending of Python, whose `wait` calls the function with the result and the contributors.
nb::object recv_async(Collectives& members, nb::handle out, const Root& source, int tag) {
  Tensor room = kept(tensor_of(out, Access::kWrite, "recv_async", "out"));
  auto coming = waiting([&] { return members.recv_async(room.view, source, tag); });
  Work work = coming.work();
  PendingWork pending(std::move(work), {std::move(room)},
                      [coming] { return nb::make_tuple(coming.wait().count); });
  const nb::object message_of = nb::cpp_function([](const nb::tuple& result) {
    return ReceivedMessage{nb::cast<std::size_t>(result[0]), nb::cast<Contributors>(result[1])};
  });
  return nb::module_::import_("elastic.pending")
      .attr("Pending")(nb::cast(std::move(pending)), message_of);
}

}  // namespace

void bind_messages(nb::module_& module, CollectivesClass& members) {
  using nb::arg;
  const auto tag = arg("tag") = 0;
  nb::class_<ReceivedMessage> message(module, "ReceivedMessage",
                                      "A message that has come into an array of the caller, at its "
                                      "beginning.");
  message.def_ro("count", &ReceivedMessage::count, "The elements of the message.")
      .def_ro("contributors", &ReceivedMessage::contributors, "The two workers.");
  define_repr(message, {"count", "contributors"});
  define(module, members, "send", &send, arg("tensor").none(), arg("to"), tag,
         R"(Sends an array to another member, which receives it by ``recv`` with the same tag.

Messages from one member to another with one tag keep their order; others overtake each other.
Nothing is buffered: the call returns when the message is there, so two members that send to each
other at once use ``send_async`` or ``recv_async``. Each message costs a barrier of the job.

Args:
    tensor: a contiguous array in host memory.
    to: a rank, or Root.worker(...).
    tag: a number by which the other member tells messages apart.

Returns:
    The Contributors: the two workers.

Raises:
    RootLostError: the other one is no member, or left the job before the message was complete.
    MismatchError: the element types differ; on both.
    InvalidArgumentError: there is no such rank, or it is this worker.)");
  define(module, members, "recv", &recv, arg("out").none(), arg("source"), tag,
         R"(Receives a message that another member sends by ``send`` with the same tag.

Args:
    out: an array of the element type of the message, with room for it. The rest stays as it is.
    source: the rank that sends, or Root.worker(...).
    tag: that of the sender.

Returns:
    The ReceivedMessage: its count of elements, and the two workers.

Raises:
    InvalidArgumentError: as ``send``, and if there is no room for the message, which is lost then.
    RootLostError, MismatchError: as ``send``.)");
  define(module, members, "send_async", &send_async, arg("tensor").none(), arg("to"), tag,
         "Starts a ``send``, and returns its Work. The array stays as it is until that is "
         "complete.");
  define(module, members, "recv_async", &recv_async, arg("out").none(), arg("source"), tag,
         "Starts a ``recv``, and returns its Pending, whose ``wait`` returns the ReceivedMessage.");
}

}  // namespace elastic::python
