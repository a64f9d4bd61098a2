// FiniteCheck: keeps NaN and Inf in gradients from the weights.
#include <optional>
#include <string>
#include <vector>

#include <elastic/finite_check.hpp>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "given_or_default_context.hpp"
#include "tensors.hpp"
#include "text.hpp"
#include "waiting.hpp"

namespace elastic::python {

namespace {

using Gradients = nb::typed<nb::dict, nb::str, nb::any>;

/// A FiniteCheck, and what keeps its gradients alive.
class PythonFiniteCheck {
 public:
  PythonFiniteCheck(const Gradients& gradients, Context* context) : context_(context) {
    look_at(gradients);
  }

  void begin_step(std::optional<Gradients> gradients) {
    if (gradients) {
      look_at(*gradients);
    } else {
      check_->begin_step();
    }
  }

  void before_sum() {
    const ReleasedLock released;
    check_->before_sum();
  }

  bool after_sum() {
    // The check refers to the context, which may have ended.
    static_cast<void>(context_.get());
    return waiting([&] { return check_->after_sum(); });
  }

 private:
  void look_at(const Gradients& gradients) {
    std::vector<Tensor> tensors;
    std::vector<NamedGradient> named;
    for (const auto& [key, value] : gradients) {
      const std::string name = text_of(key);
      const std::string what = "gradient '" + name + "'";
      tensors.push_back(tensor_of(value, Access::kRead, "FiniteCheck", what.c_str()));
      named.push_back({name, tensors.back().view});
    }
    check_.emplace(context_.get(), std::move(named));
    tensors_ = std::move(tensors);
  }

  GivenOrDefaultContext context_;
  std::vector<Tensor> tensors_;
  std::optional<FiniteCheck> check_;
};

}  // namespace

void bind_finite_check(nb::module_& module) {
  using nb::arg;
  nb::class_<PythonFiniteCheck>(
      module, "FiniteCheck",
      R"(Keeps NaN and Inf in gradients from the weights, on all ranks alike, as the option
``non_finite`` of ``init`` says: "error" raises a NotFiniteError that names rank and gradient, "skip"
leaves the step out, "pass" looks at nothing.

    check = elastic.FiniteCheck({"weight": weight_gradient, "bias": bias_gradient})
    ...
    check.begin_step()
    check.before_sum()
    elastic.grouped_allreduce([weight_gradient, bias_gradient])   # in place
    if check.after_sum():
        ...                                                       # use the sums

For sums and averages, in host memory. All members make the same calls.)")
      .def(
          nb::init<const Gradients&, Context*>(), arg("gradients"),
          arg("context").none() = nb::none(), nb::keep_alive<1, 3>(),
          R"(Looks at ``gradients``, a dict of arrays or tensors by name, which are summed in place. Uses the
default context unless another is given.

Raises:
    InvalidArgumentError: a gradient is not contiguous, or is not in host memory.
    NotInitializedError: before ``init``.)")
      .def(
          "begin_step", &PythonFiniteCheck::begin_step, arg("gradients") = nb::none(),
          R"(Begins a step, and forgets what ``before_sum`` saw in one whose sum has failed. ``gradients``:
those to look at from now on, where they are new arrays in each step.)")
      .def("before_sum", &PythonFiniteCheck::before_sum,
           "Looks at what this worker contributes, so that an error can name its rank. Call it "
           "after each\npart of a gradient that is computed in parts.")
      .def(
          "after_sum", &PythonFiniteCheck::after_sum,
          R"(Looks at the sums. Returns whether they may be used; if not, the step is to be skipped.

Raises:
    NotFiniteError: under "error", on all ranks alike. ``peer`` is the rank that contributed the
        value, or -1 if the contributions were finite and their sum is not.)");
}

}  // namespace elastic::python
