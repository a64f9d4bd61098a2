#include "work.hpp"

#include <chrono>
#include <cmath>
#include <utility>

#include <elastic/error.hpp>
#include <elastic/work.hpp>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "errors.hpp"
#include "interpreter_lock.hpp"
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

/// `stream`: the handle of a CUDA stream, or an object that has one, such as a torch.cuda.Stream.
CudaStream stream_from(const nb::object& stream) {
  const nb::object handle =
      nb::hasattr(stream, "cuda_stream") ? nb::object(stream.attr("cuda_stream")) : stream;
  std::uintptr_t address = 0;
  if (!nb::try_cast(handle, address)) {
    throw Error(ErrorCode::kInvalidArgument,
                "Work.wait: give a CUDA stream, such as torch.cuda.current_stream(), or its handle "
                "as a number");
  }
  return {reinterpret_cast<void*>(address)};
}

Contributors wait(PendingWork& pending, const nb::object& stream) {
  Contributors contributors;
  if (stream.is_none()) {
    contributors = waiting([&] { return pending.work().wait(); });
  } else {
    contributors = waiting([&, on = stream_from(stream)] { return pending.work().wait(on); });
  }
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

/// A function of Python that the library calls when the operation is complete. It may never do so;
/// then the function lives as long as the process.
class Continuation {
 public:
  Continuation(nb::object pending, nb::object function)
      : pending_(pending.release()), function_(function.release()) {}

  /// Called by a thread without the GIL, once.
  void operator()() const {
    const OfferedLock lock;
    if (!lock) return;
    const nb::object pending = nb::steal(pending_);
    const nb::object function = nb::steal(function_);
    try {
      function(pending);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable(function);
#ifdef __GLIBCXX__
    } catch (abi::__forced_unwind&) {
      sleep_until_exit();
#endif
    }
  }

 private:
  nb::handle pending_;
  nb::handle function_;
};

void then(nb::handle pending, nb::callable function) {
  const Work& work = nb::cast<PendingWork&>(pending).work();
  const Continuation continuation(nb::borrow(pending), std::move(function));
  const ReleasedLock released;
  work.then([continuation](const Work& /*work*/) { continuation(); });
}

std::vector<Work> works_of(const std::vector<PendingWork*>& pending) {
  std::vector<Work> works;
  for (const PendingWork* const each : pending) works.push_back(each->work());
  return works;
}

std::size_t wait_any(const std::vector<PendingWork*>& pending) {
  const std::vector<Work> works = works_of(pending);
  const std::size_t first = waiting([&] { return elastic::wait_any(works); });
  pending[first]->release_if_complete();
  return first;
}

void wait_all(const std::vector<PendingWork*>& pending) {
  const std::vector<Work> works = works_of(pending);
  waiting([&] { elastic::wait_all(works); });
  for (PendingWork* const each : pending) each->release_if_complete();
}

}  // namespace

PendingWork::PendingWork(Work work, std::vector<Tensor> tensors, Result result)
    : work_(std::move(work)), tensors_(std::move(tensors)), result_(std::move(result)) {
  if (!forgotten().empty()) forget_completed();
}

PendingWork::~PendingWork() {
  if (!tensors_.empty() && !work_.ready()) forgotten().emplace_back(work_, std::move(tensors_));
}

void PendingWork::release_if_complete() {
  if (work_.ready()) tensors_.clear();
}

nb::object PendingWork::take_result() {
  if (!result_) return nb::none();
  nb::object made = result_();  // where it throws, the next call throws the same
  result_ = {};
  return made;
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
      .def("wait", &wait, nb::arg("stream") = nb::none(),
           nb::sig("def wait(self, stream: typing.Any = None) -> Contributors"),
           "Waits until the operation is complete, and returns its Contributors. Raises its error "
           "if it failed.\nWith ``stream``, such as ``torch.cuda.current_stream()``, it does not "
           "wait for the device: what is\nqueued on that stream from now on sees the results. It "
           "still waits until all members have the\noperation, so that no death changes them any "
           "more.")
      .def("wait_for", &wait_for, nb::arg("seconds"),
           "Waits at most so long, and returns whether the operation is complete.")
      .def(
          "ready", [](const PendingWork& pending) { return pending.work().ready(); },
          "Returns whether the operation is complete, without waiting.")
      .def_prop_ro(
          "contributors", [](const PendingWork& pending) { return pending.work().contributors(); },
          "The Contributors of the completed operation.")
      .def("then", &then, nb::arg("function"),
           nb::sig("def then(self, function: typing.Callable[[Work], object]) -> None"),
           "Calls ``function`` once, with this Work, when the operation is complete, successfully "
           "or not: on\na thread of the library, or at once on this one. Other operations wait "
           "meanwhile, so it should be\nshort. In it collectives and waits for other operations "
           "raise InvalidArgumentError. An exception\nthat leaves it goes to "
           "``sys.unraisablehook``.")
      .def("_result", &PendingWork::take_result);
  module.def("_wait_any", &wait_any, nb::arg("works"));
  module.def("_wait_all", &wait_all, nb::arg("works"));
}

}  // namespace elastic::python
