// The needs of a training besides collectives: the sampler and learning rates.
#include <string>
#include <vector>

#include <elastic/training.hpp>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "float_tensors.hpp"
#include "named_values.hpp"
#include "new_arrays.hpp"
#include "repr.hpp"
#include "saved.hpp"

namespace elastic::python {

namespace {

/// The options of a LearningRate by their words, as ELASTIC_RESIZE_POLICY has them.
void make_learning_rate(LearningRate* memory, const Schedule& schedule, double batch_reference,
                        const std::string& rule, const std::optional<std::string>& policy,
                        std::optional<std::uint64_t> ramp_steps, double momentum) {
  LearningRate::Options options{.schedule = schedule, .batch_reference = batch_reference};
  options.rule = value_of(kScalingRules, rule, "LearningRate: rule");
  options.policy = policy ? value_of(kResizePolicies, *policy, "LearningRate: policy")
                          : elastic::resize_policy();
  options.ramp_steps = ramp_steps;
  options.momentum = momentum;
  new (memory) LearningRate(options);
}

void bind_learning_rate(nb::module_& module) {
  using nb::arg;
  nb::class_<Schedule>(
      module, "Schedule",
      "Base learning rate as a function of the samples seen in the whole training.")
      .def_static("constant", &Schedule::constant, arg("base"), "Always ``base``.")
      .def_static("step", &Schedule::step, arg("base"), arg("milestones"), arg("factor") = 0.1,
                  "``base``, times ``factor`` from each of the ``milestones`` (samples) on.")
      .def_static("cosine", &Schedule::cosine, arg("base"), arg("samples"), arg("last") = 0.0,
                  "From ``base`` along half a cosine to ``last`` at ``samples``.")
      .def_static("polynomial", &Schedule::polynomial, arg("base"), arg("samples"),
                  arg("power") = 1.0, arg("last") = 0.0,
                  "From ``base`` to ``last`` at ``samples``; a straight line with ``power`` 1.")
      .def("with_warm_up", &Schedule::with_warm_up, arg("samples"), arg("first"),
           "The same, but rising linearly from ``first`` over the first ``samples``.")
      .def("rate", &Schedule::rate, arg("samples"), "The base rate after ``samples`` samples.");
  nb::class_<Rate> rate(module, "Rate", "The rate of one step of an optimizer.");
  rate.def(
          "__init__",
          [](Rate* memory, double base, double gamma, double momentum_scale) {
            new (memory) Rate{base, gamma, momentum_scale};
          },
          arg("base"), arg("gamma") = 1.0, arg("momentum_scale") = 1.0)
      .def_ro("base", &Rate::base, "The schedule's rate, which suits the reference batch.")
      .def_ro("gamma", &Rate::gamma, "The factor that suits the batch of this step.")
      .def_ro("momentum_scale", &Rate::momentum_scale,
              "What the momentum is multiplied by before the step.")
      .def_prop_ro("value", &Rate::value, "The rate itself: base times gamma.");
  define_repr(rate, {"base", "gamma", "momentum_scale"});
  nb::class_<LearningRate>(
      module, "LearningRate",
      R"(The learning rate of a training whose workers come and go: it follows the global batch, and takes
growth in small steps (Dynamic SGD, Lin et al. 2019). Put it into the State.)")
      .def(
          "__init__", &make_learning_rate, arg("schedule"), arg("batch_reference"),
          arg("rule") = "linear", arg("policy") = nb::none(), arg("ramp_steps") = nb::none(),
          arg("momentum") = 0.9,
          R"(``batch_reference``: samples per step for which the schedule was chosen. ``rule``: "linear" "sqrt"
or "adascale". ``policy``: "ramp", "immediate", "rescale", "reset" or "none"; by default that of the
option resize_policy, after ``init``.)")
      .def(
          "step", &LearningRate::step, arg("batch"), arg("samples"),
          R"(Call once per step, before the update, with the global batch that the rate should suit and
the samples that were really used; the same on all members. Returns the Rate.)")
      .def(
          "observe",
          [](LearningRate& self, const GradientNoise::Moments& total, nb::sequence gradient_sum) {
            const FloatTensors gradient(std::move(gradient_sum), Access::kRead,
                                        "LearningRate.observe");
            self.observe(total, gradient.gradient());
          },
          arg("total"), arg("gradient_sum"),
          R"(The rule "adascale" asks for it before each ``step``: the sums over all workers of
GradientNoise.moments and of the gradients, made by one grouped_allreduce.)")
      .def(
          "set_schedule",
          [](LearningRate& self, const Schedule& schedule) { self.set_schedule(schedule); },
          arg("schedule"),
          "Goes on by another schedule, from where ``progress`` is; at the same step on all "
          "members.")
      .def_prop_ro(
          "rule",
          [](const LearningRate& self) { return std::string(name_in(kScalingRules, self.rule())); },
          "How the rate follows the batch.")
      .def_prop_ro(
          "policy",
          [](const LearningRate& self) {
            return std::string(name_in(kResizePolicies, self.policy()));
          },
          "When the rate follows the batch.")
      .def_prop_ro("latest", &LearningRate::latest, "The Rate of the latest step.")
      .def_prop_ro("progress", &LearningRate::progress, "The samples used so far.")
      .def("save", &saved<LearningRate>, "All of it as bytes.")
      .def("load", &load<LearningRate>, arg("bytes"), "Reverse of ``save``.");
}

void commit(Sampler& sampler, nb::object contributors) {
  std::vector<Contributors> several;
  if (nb::isinstance<Contributors>(contributors)) {
    sampler.commit(nb::cast<const Contributors&>(contributors));
  } else if (nb::try_cast(contributors, several, false)) {
    sampler.commit(std::span<const Contributors>(several));
  } else {
    throw nb::type_error(
        "Sampler.commit: give the Contributors that an allreduce or work.wait() returned, or a "
        "list of them");
  }
}

}  // namespace

void bind_training(nb::module_& module) {
  using nb::arg;
  nb::class_<Sampler>(
      module, "Sampler",
      R"(Distributes the samples of each epoch to the workers, each exactly once, however the workers
change. Put it into the State.)")
      .def(nb::init<std::size_t, std::uint64_t>(), arg("size"), arg("seed") = 0,
           "Distributes samples 0 to size-1; the same ``size`` and ``seed`` on all workers.")
      .def(
          "next",
          [](Sampler& sampler, std::size_t batch) { return new_array(sampler.next(batch)); },
          arg("batch_per_worker"),
          R"(Draws the next global batch, and returns this worker's share: an array of int64 with the
indices of samples. At an epoch's end the share may be short or empty; the worker still takes part
in the step.)")
      .def(
          "commit", &commit, arg("contributors"),
          nb::sig("def commit(self, contributors: Contributors | "
                  "collections.abc.Sequence[Contributors]) -> "
                  "None"),
          R"(Ends the draw. ``contributors`` is what the step's allreduce returned, or a list of them if the
step had several. Samples of workers that are not in all of them are drawn again, by others.)")
      .def("finished", &Sampler::finished, arg("epochs"),
           "Returns whether so many epochs are used up: the condition of a training loop.")
      .def_prop_ro("epoch", &Sampler::epoch, "The epoch of the latest draw, from 0.")
      .def_prop_ro("done_in_epoch", &Sampler::done_in_epoch,
                   "The samples of this epoch that were used so far.")
      .def_prop_ro("global_batch", &Sampler::global_batch,
                   "The samples in the open draw over all members.")
      .def_prop_ro("members",
                   [](const Sampler& sampler) {
                     const auto members = sampler.members();
                     return std::vector<WorkerId>(members.begin(), members.end());
                   })
      .def("__len__", &Sampler::size);
  bind_learning_rate(module);
}

}  // namespace elastic::python
