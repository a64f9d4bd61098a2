// The state that joiners receive, `run`, and objects of Python in the state.
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <elastic/training.hpp>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "errors.hpp"
#include "optimizers.hpp"
#include "tensors.hpp"
#include "waiting.hpp"

namespace elastic::python {

namespace {

/// The first exception of a `load` in a call, which the library makes an Error of its own.
using LoadFailure = std::shared_ptr<nb::python_error>;

/// An object of Python in the state, by its functions.
class PythonObject {
 public:
  PythonObject(nb::object save, nb::object load, nb::object set_members, LoadFailure& failure)
      : save_(std::move(save)),
        load_(std::move(load)),
        set_members_(std::move(set_members)),
        failure_(failure) {}

  std::vector<std::byte> save() const {
    return call_python([&] {
      const nb::bytes bytes(save_());
      const auto* const first = static_cast<const std::byte*>(bytes.data());
      return std::vector<std::byte>(first, first + bytes.size());
    });
  }
  void load(std::span<const std::byte> bytes) const {
    call_python([&] {
      try {
        load_(nb::bytes(bytes.data(), bytes.size()));
      } catch (const nb::python_error& error) {
        if (!failure_) failure_ = std::make_shared<nb::python_error>(error);
        throw;
      }
    });
  }
  void set_members(std::span<const WorkerId> members, WorkerId self) const {
    if (set_members_.is_none()) return;
    call_python([&] { set_members_(std::vector<WorkerId>(members.begin(), members.end()), self); });
  }

 private:
  nb::object save_;
  nb::object load_;
  nb::object set_members_;
  LoadFailure& failure_;
};

/// A State, and what keeps its entries alive.
struct PythonState {
  LoadFailure load_failure;
  std::deque<PythonObject> objects;  // before `state`, which refers to them
  std::vector<Tensor> tensors;
  std::vector<nb::object> entries;
  State state;
};

void add_tensor(PythonState& self, const std::string& name, nb::handle object) {
  const std::string what = "entry '" + name + "'";
  Tensor tensor = tensor_of(object, Access::kWrite, "State.add", what.c_str());
  self.state.add(name, tensor.view);
  self.tensors.push_back(std::move(tensor));
}

void add_object(PythonState& self, const std::string& name, nb::object save, nb::object load,
                nb::object set_members) {
  self.objects.emplace_back(std::move(save), std::move(load), std::move(set_members),
                            self.load_failure);
  try {
    self.state.add(name, self.objects.back());
  } catch (...) {
    self.objects.pop_back();
    throw;
  }
}

template <typename Entry>
void add_entry(PythonState& self, const std::string& name, nb::object object) {
  self.state.add(name, nb::cast<Entry&>(object));
  self.entries.push_back(std::move(object));
}

template <typename Optimizer>
void add_optimizer(PythonState& self, const std::string& name, nb::object object) {
  nb::cast<PythonOptimizer<Optimizer>&>(object).optimizer.add_to(self.state, name);
  self.entries.push_back(std::move(object));
}

/// Makes a call that loads objects. Where the `load` of one has failed, its exception is the cause
/// of the call's error; KeyboardInterrupt, SystemExit and the like come out as they are.
template <typename Call>
auto loading(PythonState& self, Call&& call) {
  self.load_failure.reset();
  try {
    return waiting(std::forward<Call>(call));
  } catch (const Error& error) {
    const LoadFailure failure = std::move(self.load_failure);
    if (!failure || dynamic_cast<const PassedError*>(&error) != nullptr) throw;
    if (!nb::isinstance(failure->value(), PyExc_Exception)) throw nb::python_error(*failure);
    throw CausedError(error, failure);
  }
}

RunOutcome run(Context& context, PythonState& self, nb::object body) {
  return loading(self,
                 [&] { return context.run(self.state, [&] { call_python([&] { body(); }); }); });
}

}  // namespace

void bind_state(nb::module_& module, ContextClass& context) {
  using nb::arg;
  nb::enum_<RunOutcome>(module, "RunOutcome", "How ``run`` came to its end.")
      .value("FINISHED", RunOutcome::kFinished, "The body returned: the training is done.")
      .value("REMOVED", RunOutcome::kRemoved, "This worker was asked to leave; the others go on.")
      .value("STOPPED", RunOutcome::kStopped, "The job was asked to stop.")
      .value("LEFT_OUT", RunOutcome::kLeftOut,
             "The job was done, or stopped, without this worker; its state is not that of the "
             "training's end.");
  nb::class_<PythonState>(module, "_State")
      .def(nb::init<>())
      .def("add_tensor", &add_tensor, arg("name"), arg("tensor"))
      .def("add_object", &add_object, arg("name"), arg("save"), arg("load"),
           arg("set_members") = nb::none())
      .def("add_sampler", &add_entry<Sampler>, arg("name"), arg("sampler"))
      .def("add_learning_rate", &add_entry<LearningRate>, arg("name"), arg("learning_rate"))
      .def("add_momentum_sgd", &add_optimizer<MomentumSgd>, arg("name"), arg("optimizer"))
      .def("add_adam_w", &add_optimizer<AdamW>, arg("name"), arg("optimizer"))
      .def("commit", [](PythonState& self) { waiting([&] { self.state.commit(); }); })
      .def("commits", [](const PythonState& self) { return self.state.commits(); })
      .def("save_to",
           [](const PythonState& self, const nb::bytes& path) {
             waiting(
                 [&, name = std::string(path.c_str(), path.size())] { self.state.save_to(name); });
           })
      .def("load_from", [](PythonState& self, const nb::bytes& path) {
        return loading(self, [&, name = std::string(path.c_str(), path.size())] {
          return self.state.load_from(name);
        });
      });
  define(module, context, "_run", &run, arg("state"), arg("body"));
}

}  // namespace elastic::python
