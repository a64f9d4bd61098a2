// Where the time goes: of steps and of changes of the view, and how operations are done.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <elastic/diagnostics.hpp>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "repr.hpp"

namespace elastic::python {

namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// A member with a time, as seconds.
template <auto kMember>
double time_of(const StepTime& time) {
  return seconds(time.*kMember);
}

/// A member with a moment, as time.monotonic() has it.
template <auto kMember>
double moment_of(const ViewChange& change) {
  return seconds((change.*kMember).time_since_epoch());
}

/// `with loading_data():`, which has no scope of C++.
class Loading {
 public:
  void enter() { loading_.emplace(); }
  void exit() { loading_.reset(); }

 private:
  std::optional<LoadingData> loading_;
};

void bind_step_times(nb::module_& module) {
  nb::class_<StepTime> step_time(
      module, "StepTime",
      "Where the time of a step, from one commit to the next, went; in seconds.");
  step_time.def_prop_ro("data", &time_of<&StepTime::data>, "Within ``loading_data()``.")
      .def_prop_ro("compute", &time_of<&StepTime::compute>, "All the rest.")
      .def_prop_ro("communication", &time_of<&StepTime::communication>,
                   "Blocked in collectives and in Work.wait.")
      .def_prop_ro("view_change", &time_of<&StepTime::view_change>,
                   "Blocked while members came and went.")
      .def_prop_ro(
          "total", [](const StepTime& time) { return seconds(time.total()); }, "Of the whole step.")
      .def_prop_ro(
          "own", [](const StepTime& time) { return seconds(time.own()); },
          "Of this worker's own work, for which others may have waited: data and compute.");
  define_repr(step_time, {"data", "compute", "communication", "view_change"});
  nb::class_<StepTimes> step_times(module, "StepTimes",
                                   "The steps that this worker has made in ``run``.");
  step_times.def_ro("steps", &StepTimes::steps, "Their number.")
      .def_ro("latest", &StepTimes::latest, "The last one that was committed.")
      .def_ro("sum", &StepTimes::sum, "Of all of them.")
      .def_ro("compared_commit", &StepTimes::compared_commit,
              "The latest step in which the ranks told each other their times; 0: none yet.")
      .def_ro("by_rank", &StepTimes::by_rank, "The times of that step, by rank.")
      .def_ro("slowest", &StepTimes::slowest, "The rank with the longest ``own`` time, or -1.");
  define_repr(step_times, {"steps", "latest", "sum", "compared_commit", "by_rank", "slowest"});
}

void bind_view_change(nb::module_& module) {
  nb::class_<ViewChange> view_change(
      module, "ViewChange",
      "Where the time of a change of the members went. Moments are those of time.monotonic(), in "
      "order.");
  view_change
      .def_ro("generation", &ViewChange::generation,
              "Of the view that it led to; 0: there was no change yet.")
      .def_ro("cause", &ViewChange::cause, "For people: the workers that came and left.")
      .def_prop_ro("noticed", &moment_of<&ViewChange::noticed>,
                   "A broken link, the server's request, or the step boundary.")
      .def_prop_ro("reported", &moment_of<&ViewChange::reported>,
                   "The server was told that nothing of the old view happens here any more.")
      .def_prop_ro("decided", &moment_of<&ViewChange::decided>, "The new view came.")
      .def_prop_ro("linked", &moment_of<&ViewChange::linked>,
                   "There was a link to every other member.")
      .def_prop_ro("installed", &moment_of<&ViewChange::installed>, "Operations go on.")
      .def_prop_ro("resumed", &moment_of<&ViewChange::resumed>,
                   "The first of them was complete here; 0 until then.");
  define_repr(view_change, {"generation", "cause", "noticed", "reported", "decided", "linked",
                            "installed", "resumed"});
}

void bind_tuning(nb::module_& module) {
  nb::class_<Tuning> tuning(module, "Tuning",
                            "The measured links of the members, and the algorithms chosen.");
  nb::class_<Tuning::Link> link(tuning, "Link",
                                "The slowest link of a kind; zeros if there is none.");
  link.def_ro("latency_us", &Tuning::Link::latency_us, "Of a message of a few bytes.")
      .def_ro("gigabytes_per_second", &Tuning::Link::gigabytes_per_second,
              "Powers of ten, each way.");
  define_repr(link, {"latency_us", "gigabytes_per_second"});
  nb::class_<Tuning::Choice> choice(tuning, "Choice", "The algorithm for tensors of up to a size.");
  choice.def_ro("up_to_bytes", &Tuning::Choice::up_to_bytes, "Of the tensor.")
      .def_ro("algorithm", &Tuning::Choice::algorithm, "Its name.");
  define_repr(choice, {"up_to_bytes", "algorithm"});
  tuning.def_ro("generation", &Tuning::generation, "Of the view; 0: there was no operation yet.")
      .def_ro("inside_hosts", &Tuning::inside_hosts, "Between two ranks on one host.")
      .def_ro("between_hosts", &Tuning::between_hosts, "Between two ranks on different hosts.")
      .def_ro("flows_opened", &Tuning::flows_opened, "TCP connections of a link between hosts.")
      .def_ro("flows_used", &Tuning::flows_used, "How many of them carry data.")
      .def_ro("allreduce", &Tuning::allreduce, "The choices, by ascending size.")
      .def_ro("segment_bytes", &Tuning::segment_bytes, "Pieces of large tensors.");
  define_repr(tuning, {"generation", "inside_hosts", "between_hosts", "flows_opened", "flows_used",
                       "allreduce", "segment_bytes"});
}

StepTimes step_times(Context& context) {
  return context.step_times();
}
ViewChange last_view_change(Context& context) {
  return context.last_view_change();
}
void start_timeline(Context& context, const std::string& path) {
  context.start_timeline(path);
}
void stop_timeline(Context& context) {
  context.stop_timeline();
}
std::string timeline_file(Context& context) {
  return context.timeline_file();
}
Tuning tuning(Context& context) {
  return context.tuning();
}

}  // namespace

void bind_diagnostics(nb::module_& module, ContextClass& context) {
  bind_step_times(module);
  bind_view_change(module);
  bind_tuning(module);
  nb::class_<Loading>(module, "LoadingData", "What ``loading_data`` returns.")
      .def("__enter__", &Loading::enter)
      .def(
          "__exit__", [](Loading& self, const nb::args&) { self.exit(); },
          nb::sig("def __exit__(self, *raised: object) -> None"));
  module.def(
      "loading_data", [] { return new Loading(); }, nb::rv_policy::take_ownership,
      "Counts a block as StepTime.data: ``with elastic.loading_data(): batch = next(reader)``.");
  define(module, context, "step_times", &step_times, "Where the time of this worker's steps went.");
  define(module, context, "last_view_change", &last_view_change,
         "The latest change of the members that this worker went through.");
  define(module, context, "start_timeline", &start_timeline, nb::arg("path"),
         "Writes a timeline of this worker from now on, for Perfetto: ``trace.json`` becomes "
         "``trace.<worker>.json``.");
  define(module, context, "stop_timeline", &stop_timeline,
         "Completes the timeline's file. Nothing without one.");
  define(module, context, "timeline_file", &timeline_file,
         "The file that the timeline is written to; empty without one.");
  define(module, context, "tuning", &tuning, "How operations are done in the present view.");
}

}  // namespace elastic::python
