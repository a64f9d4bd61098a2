#include "work.hpp"

#include <chrono>
#include <cmath>
#include <utility>

#include <elastic/error.hpp>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "waiting.hpp"

namespace elastic::python {

namespace {

/// Operations that Python has forgotten before they were complete. Guarded by the GIL; never
/// destroyed, because threads of the library may still write to the tensors as the process exits.
std::vector<std::pair<Work, std::vector<Tensor>>>& forgotten() {
  static auto* const operations = new std::vector<std::pair<Work, std::vector<Tensor>>>;
  return *operations;
}

void forget_completed() {
  std::erase_if(forgotten(), [](const auto& operation) { return operation.first.ready(); });
}

Contributors wait(PendingWork& pending) {
  Contributors contributors = waiting([&] { return pending.work().wait(); });
  pending.release_if_complete();
  return contributors;
}

bool wait_for(PendingWork& pending, double seconds) {
  if (!(seconds >= 0)) {
    throw Error(ErrorCode::kInvalidArgument, "Work.wait_for: a time of " + std::to_string(seconds) +
                                                 " s is none; give 0 or more seconds");
  }
  constexpr double kLongest = 1e9;  // seconds: a time in nanoseconds has 64 bits
  const auto timeout =
      std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(seconds, kLongest) * 1e9));
  const bool complete = waiting([&] { return pending.work().wait_for(timeout); });
  pending.release_if_complete();
  return complete;
}

}  // namespace

PendingWork::PendingWork(Work work, std::vector<Tensor> tensors)
    : work_(std::move(work)), tensors_(std::move(tensors)) {
  if (!forgotten().empty()) forget_completed();
}

PendingWork::~PendingWork() {
  if (!tensors_.empty() && !work_.ready()) forgotten().emplace_back(work_, std::move(tensors_));
}

void PendingWork::release_if_complete() {
  if (work_.ready()) tensors_.clear();
}

void bind_work(nb::module_& module) {
  nb::class_<Contributors>(module, "Contributors",
                           "The workers whose parts are in the result of a collective. ``len()`` "
                           "of it is their number,\n"
                           "the same on every rank that returned from the call.")
      .def("__len__", &Contributors::size)
      .def_prop_ro(
          "workers",
          [](const Contributors& contributors) {
            const auto workers = contributors.workers();
            return std::vector<WorkerId>(workers.begin(), workers.end());
          },
          "Their ids, in the order of their ranks.")
      .def_prop_ro("generation", &Contributors::generation,
                   "The number of the view in which the call was completed.")
      .def("__repr__", [](const Contributors& contributors) {
        return "<elastic.Contributors: " + std::to_string(contributors.size()) +
               " workers, generation " + std::to_string(contributors.generation()) + ">";
      });
  nb::class_<PendingWork>(
      module, "Work",
      "An asynchronous operation under way. Keeps its tensors alive until it is complete.")
      .def("wait", &wait,
           "Waits until the operation is complete, and returns its Contributors. Raises its error "
           "if "
           "it failed.")
      .def("wait_for", &wait_for, nb::arg("seconds"),
           "Waits at most so long, and returns whether the operation is complete.")
      .def(
          "ready", [](const PendingWork& pending) { return pending.work().ready(); },
          "Returns whether the operation is complete, without waiting.")
      .def_prop_ro(
          "contributors", [](const PendingWork& pending) { return pending.work().contributors(); },
          "The Contributors of the completed operation.");
}

}  // namespace elastic::python
