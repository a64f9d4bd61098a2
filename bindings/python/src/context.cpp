// One worker's membership: Context, init and shutdown, and what a worker can ask.
#include <string>

#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "errors.hpp"
#include "text.hpp"
#include "waiting.hpp"

namespace elastic::python {

namespace {

/// A value as the environment variables have it.
std::string text_of_option(nb::handle value) {
  if (value.is(Py_True)) return "1";
  if (value.is(Py_False)) return "0";
  return text_of(value);
}

Options options_of(const nb::kwargs& given) {
  Options options;
  for (const auto& [name, value] : given) {
    set_option(options, text_of(name), text_of_option(value));
  }
  return options;
}

void init(const nb::kwargs& given) {
  const Options options = options_of(given);
  waiting([&] { elastic::init(options); });
}

void make_context(Context* memory, const nb::kwargs& given) {
  Options options = options_of(given);
  waiting([&] { new (memory) Context(std::move(options)); });
}

int rank(Context& context) {
  return context.rank();
}
int size(Context& context) {
  return context.size();
}
int local_rank(Context& context) {
  return context.local_rank();
}
int local_size(Context& context) {
  return context.local_size();
}
std::uint64_t generation(Context& context) {
  return context.generation();
}
WorkerId worker_id(Context& context) {
  return context.id();
}
Contributors members(Context& context) {
  return context.members();
}

JoinOutcome join(Context& context) {
  return waiting([&] { return context.join(); });
}

/// Not `context.shutdown()` by `define`: the default context goes with it.
void shut_context_down(Context& context) {
  waiting([&] { context.shutdown(); });
}
void shut_down() {
  waiting([] { elastic::shutdown(); });
}

}  // namespace

void bind_context(nb::module_& module, ContextClass& context) {
  module.def("init", &init, nb::arg("options"), nb::sig("def init(**options: typing.Any) -> None"),
             R"(Joins the job that elasticrun or mpirun started this process for.

Options have the names of the environment variables without ``ELASTIC_`` and in small letters,
such as ``bucket_bytes="16M"`` or ``view_timeout_ms=5000``; the environment overrides them.

Raises:
    InvalidArgumentError: there is no such option, or its value is not allowed.
    UnavailableError: no server at the address.
    RefusedError: the job refused this worker.
    TimeoutError: too few workers came.)");
  module.def("shutdown", &shut_down,
             "Says that the job is done, and waits for the other members to say so too: for half a "
             "second,\nand longer only to give them results that they lack.");
  context.def("__init__", &make_context, nb::arg("options"),
              nb::sig("def __init__(self, **options: typing.Any) -> None"),
              "Joins a job, as ``init`` does. For programs with several jobs.");
  context.def("shutdown", &shut_context_down, "As the function ``shutdown``.");
  nb::class_<JoinOutcome>(module, "JoinOutcome", "What ``join`` returns, on all members alike.")
      .def_ro("last_rank", &JoinOutcome::last_rank,
              "The rank, among the contributors, that called ``join`` last.")
      .def_ro("contributors", &JoinOutcome::contributors, "The workers that have joined.")
      .def("__repr__", [](const JoinOutcome& outcome) {
        return "<elastic.JoinOutcome: last rank " + std::to_string(outcome.last_rank) + " of " +
               std::to_string(outcome.contributors.size()) + " workers>";
      });
  define(module, context, "join", &join,
         R"(Says that this worker has no more data, and waits until all members have said so.

Until then the allreduces with a name and the barriers with a name of the others go on without it:
a sum lacks its tensors, and an average divides by all members all the same. Their other calls with
a name end in MismatchError. Calls without a name do not know of it, and wait for this worker.

Waits first for all calls of this worker with a name, and for those of this thread without one.

Raises:
    InvalidArgumentError: another thread is in ``join``.)");
  define(module, context, "rank", &rank,
         "The rank in the present view, with which it changes; -1 while joining.");
  define(module, context, "size", &size,
         "The number of members of the present view; 0 while joining.");
  define(module, context, "local_rank", &local_rank, "The rank among the members on this host.");
  define(module, context, "local_size", &local_size, "The number of members on this host.");
  define(module, context, "generation", &generation,
         "The number of the present view; 0 while joining.");
  define(module, context, "worker_id", &worker_id,
         "This worker, as it appears in Contributors.workers.");
  define(module, context, "members", &members,
         "The members of the present view, all of one moment; none while joining.");
}

}  // namespace elastic::python
