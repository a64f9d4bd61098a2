#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <elastic/error.hpp>
#include <elastic/step_group.hpp>

#include "bindings.hpp"
#include "given_op.hpp"
#include "given_or_default_context.hpp"
#include "tensors.hpp"
#include "text.hpp"
#include "waiting.hpp"

namespace elastic::python {

namespace {

/// A StepGroup, with the tensors of the step.
class PythonStepGroup {
 public:
  explicit PythonStepGroup(Context* context) : context_(context) {}
  PythonStepGroup(PythonStepGroup&&) = delete;
  /// Threads of the library may still write to tensors that were not waited for.
  ~PythonStepGroup() {
    if (!tensors_.empty()) new std::vector<Tensor>(std::move(tensors_));
  }

  void allreduce(const std::string& name, nb::handle tensor, GivenOp given_op, nb::handle out) {
    const ReduceOp op = given_op.in("StepGroup.allreduce");
    if (!group_) group_.emplace(context_.get());
    const bool in_place = out.is_none();
    Tensor input = kept(tensor_of(tensor, in_place ? Access::kWrite : Access::kRead,
                                  "StepGroup.allreduce", "tensor"));
    Tensor output =
        in_place ? input : kept(tensor_of(out, Access::kWrite, "StepGroup.allreduce", "out"));
    waiting([&] { group_->allreduce(name, input.view, output.view, op); });
    tensors_.push_back(std::move(input));
    if (!in_place) tensors_.push_back(std::move(output));
  }

  Contributors wait() {
    if (!group_) return {};
    Contributors contributors = waiting([&] { return group_->wait(); });
    tensors_.clear();
    return contributors;
  }

  std::size_t open() const { return group_ ? group_->open() : 0; }
  std::size_t kept_bytes() const { return group_ ? group_->kept_bytes() : 0; }

 private:
  GivenOrDefaultContext context_;
  std::optional<StepGroup> group_;  // from the first tensor on
  std::vector<Tensor> tensors_;
};

/// Null for None.
Context* given_context(nb::handle given) {
  Context* context = nullptr;
  if (given.is_none() || nb::try_cast(given, context, false)) return context;
  throw Error(ErrorCode::kInvalidArgument,
              "StepGroup: context is " + text_of(nb::repr(given)) +
                  "; give an elastic.Context, or nothing: a step is one of all workers");
}

}  // namespace

void bind_step_group(nb::module_& module) {
  nb::class_<PythonStepGroup>(
      module, "StepGroup",
      "The gradients of a training step as one unit: named allreduces that are submitted as the "
      "gradients\nbecome ready, and committed together. If a member dies within the step, the "
      "results of all tensors\nare over the same contributors.\n\nOne object serves step after "
      "step. Tensors are in host memory. An input that is summed in place is\nkept as a copy until "
      "``wait``.")
      .def(
          "__init__",
          [](PythonStepGroup* self, nb::handle context) {
            new (self) PythonStepGroup(given_context(context));
          },
          nb::arg("context").none() = nb::none(), nb::keep_alive<1, 2>(),
          nb::sig("def __init__(self, context: Context | None = None) -> None"))
      .def("allreduce", &PythonStepGroup::allreduce, nb::arg("name"), nb::arg("tensor").none(),
           nb::arg("op") = ReduceOp::kSum, nb::kw_only(), nb::arg("out") = nb::none(),
           "Adds a tensor to the step, and starts its allreduce: in place, or from ``tensor`` to "
           "``out``, with\nwhich ``tensor`` stays as it is.\n\nRaises:\n    InvalidArgumentError: "
           "the name is in this step already.")
      .def(
          "wait", &PythonStepGroup::wait,
          "Ends the step: waits until all its tensors have results over the same contributors, and "
          "returns\nthese.\n\nRaises:\n    MismatchError: the ranks differ about a tensor; those "
          "in place are as they were before.")
      .def_prop_ro("open", &PythonStepGroup::open, "The tensors of this step without a wait.")
      .def_prop_ro("kept_bytes", &PythonStepGroup::kept_bytes,
                   "The bytes of the inputs that are kept as copies.");
}

}  // namespace elastic::python
