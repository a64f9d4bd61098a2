// Optimizers for arrays of float32, and the gradient's noise.
#include "optimizers.hpp"

#include <string>
#include <variant>

#include <nanobind/stl/array.h>
#include <nanobind/stl/variant.h>

#include "bindings.hpp"
#include "new_arrays.hpp"
#include "saved.hpp"

namespace elastic::python {

namespace {

using Sgd = PythonOptimizer<MomentumSgd>;
using Adam = PythonOptimizer<AdamW>;

void make_sgd(Sgd* memory, nb::sequence parameters, double momentum, bool nesterov,
              double weight_decay, bool decoupled) {
  MomentumSgd::Options options{
      .momentum = momentum, .nesterov = nesterov, .weight_decay = weight_decay};
  if (decoupled) options.decay = WeightDecay::kDecoupled;
  new (memory) Sgd(std::move(parameters), options, "MomentumSgd");
}

void make_adam(Adam* memory, nb::sequence parameters, double beta1, double beta2, double epsilon,
               double weight_decay, bool scale_betas) {
  const AdamW::Options options{.beta1 = beta1,
                               .beta2 = beta2,
                               .epsilon = epsilon,
                               .weight_decay = weight_decay,
                               .scale_betas = scale_betas};
  new (memory) Adam(std::move(parameters), options, "AdamW");
}

template <typename Optimizer>
void step(PythonOptimizer<Optimizer>& self, nb::sequence gradient_sum, double batch,
          const std::variant<Rate, double>& rate) {
  const FloatTensors gradient(std::move(gradient_sum), Access::kRead, "step");
  const auto* const number = std::get_if<double>(&rate);
  self.optimizer.step(gradient.gradient(), batch,
                      number != nullptr ? Rate{.base = *number} : std::get<Rate>(rate));
}

template <typename Optimizer, typename Class>
void define_step(Class& bound) {
  using nb::arg;
  bound
      .def(
          "step", &step<Optimizer>, arg("gradient_sum"), arg("batch"), arg("rate"),
          R"(One step. ``gradient_sum``: arrays of float32 like the parameters, summed over samples, which
are divided by ``batch``. ``rate``: what LearningRate.step returned, or a number.

Raises:
    InvalidArgumentError: changing nothing, for arrays of other sizes, or a batch or rate out of
        range.)")
      .def_prop_ro(
          "momentum",
          [](PythonOptimizer<Optimizer>& self) { return new_array(self.optimizer.momentum()); },
          nb::rv_policy::automatic, "A copy of the momentum, the tensors one after another.");
}

void bind_gradient_noise(nb::module_& module) {
  using nb::arg;
  nb::class_<GradientNoise>(
      module, "GradientNoise",
      R"(How noisy the gradient is, estimated from how much the gradients of a step's workers differ
(AdaScale, Johnson et al. 2020). Put it into the State.)")
      .def(nb::init<>())
      .def_static(
          "moments",
          [](nb::sequence gradient_sum, double samples) {
            const FloatTensors gradient(std::move(gradient_sum), Access::kRead, "moments");
            const auto moments = GradientNoise::moments(gradient.gradient(), samples);
            return new_array(std::span<const double>(moments));
          },
          arg("gradient_sum"), arg("samples"),
          R"(What this worker adds to the group that is summed: an array of its samples, 1 if it has any, and
the squared norm of ``gradient_sum`` divided by samples.)")
      .def(
          "observe",
          [](GradientNoise& self, const GradientNoise::Moments& total, nb::sequence gradient_sum,
             double batch_reference) {
            const FloatTensors gradient(std::move(gradient_sum), Access::kRead, "observe");
            self.observe(total, gradient.gradient(), batch_reference);
          },
          arg("total"), arg("gradient_sum"), arg("batch_reference"),
          "Takes in one step: the sums over all workers of their moments and of their gradients.")
      .def(
          "gain", &GradientNoise::gain, arg("scale"), arg("batch_reference"),
          R"(How many steps of the reference batch one of ``scale`` times its size replaces: from 1, without
noise, to ``scale``.)")
      .def_prop_ro("variance", &GradientNoise::variance,
                   "The variance of the gradient of one sample.")
      .def_prop_ro("square", &GradientNoise::square, "The squared norm of the true gradient.")
      .def_prop_ro("estimates", &GradientNoise::estimates, "The steps in the averages.")
      .def("save", &saved<GradientNoise>, "The averages as bytes, for the State.")
      .def("load", &load<GradientNoise>, arg("bytes"), "Reverse of ``save``.");
}

}  // namespace

void bind_optimizers(nb::module_& module) {
  using nb::arg;
  nb::class_<Sgd> sgd(
      module, "MomentumSgd",
      R"(Stochastic gradient descent with momentum for arrays of float32. Equal inputs give equal bits on
every worker. Put it into the State, beside the parameters.)");
  sgd.def(
      "__init__", &make_sgd, arg("parameters"), arg("momentum") = 0.9, arg("nesterov") = false,
      arg("weight_decay") = 0.0, arg("decoupled") = false,
      R"(``parameters``: a list of arrays, which are updated in place. ``decoupled``: weight decay
multiplies the weights instead of being added to the gradient.)");
  define_step<MomentumSgd>(sgd);
  nb::class_<Adam> adam(
      module, "AdamW",
      R"(Adam with decoupled weight decay for arrays of float32. The rate follows the square root of the
batch, so give LearningRate the linear rule. Put it into the State, beside the parameters.)");
  adam.def(
      "__init__", &make_adam, arg("parameters"), arg("beta1") = 0.9, arg("beta2") = 0.999,
      arg("epsilon") = 1e-8, arg("weight_decay") = 0.01, arg("scale_betas") = false,
      R"(``parameters``: a list of arrays, which are updated in place. ``scale_betas``: the betas and
epsilon, which suit the reference batch, follow the batch as well.)");
  define_step<AdamW>(adam);
  adam.def_prop_ro(
      "variance", [](Adam& self) { return new_array(self.optimizer.variance()); },
      nb::rv_policy::automatic, "A copy of the mean squares, the tensors one after another.");
  bind_gradient_noise(module);
}

}  // namespace elastic::python
