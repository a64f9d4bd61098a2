// A step's batch: constant as workers come and go, or averaged over unequal ones.
#include <string>
#include <vector>

#include <elastic/global_batch.hpp>
#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "errors.hpp"
#include "given_or_default_context.hpp"
#include "named_values.hpp"
#include "new_arrays.hpp"
#include "repr.hpp"
#include "saved.hpp"
#include "tensors.hpp"
#include "waiting.hpp"

namespace elastic::python {

namespace {

/// A part of a step's batch, as Python sees it: it may keep it.
struct PythonPart {
  std::size_t virtual_worker = 0;
  NewArray<std::int64_t> samples;
  RandomStream random;
};

detail::GroupedAllreduce allreduce_of(GivenOrDefaultContext context) {
  return [context](std::span<const TensorView> tensors, ReduceOp op) {
    return context.get().grouped_allreduce(tensors, op);
  };
}

GlobalBatch::Options options_of(const std::string& policy, std::size_t batch,
                                std::size_t virtual_workers) {
  return {.policy = value_of(kBatchPolicies, policy, "GlobalBatch: policy"),
          .batch = batch,
          .virtual_workers = virtual_workers};
}

class PythonGlobalBatch {
 public:
  PythonGlobalBatch(Sampler& sampler, std::size_t batch, const std::string& policy,
                    std::size_t virtual_workers, Context* context)
      : batches_(allreduce_of(GivenOrDefaultContext(context)), sampler,
                 options_of(policy, batch, virtual_workers)) {}

  BatchSum sum(nb::sequence tensors, nb::callable add_gradients) {
    const std::vector<Tensor> given = tensors_of(tensors, Access::kWrite, "GlobalBatch.sum");
    const std::vector<TensorView> views = views_of(given);
    return waiting([&] {
      return batches_.sum(views, [&](VirtualBatch& part) {
        call_python([&] {
          add_gradients(PythonPart{part.virtual_worker, new_array(part.samples), part.random});
        });
      });
    });
  }

  GlobalBatch& batches() { return batches_; }

 private:
  GlobalBatch batches_;
};

/// A generator of NumPy that is seeded by the stream.
nb::object generator(RandomStream& stream) {
  const nb::module_ random = nb::module_::import_("numpy.random");
  nb::list words;
  for (int word = 0; word < 4; ++word) words.append(stream());
  return random.attr("Generator")(random.attr("Philox")(words));
}

SampleAverage average_by_samples(Context& context, nb::sequence sums, std::uint64_t samples) {
  const std::vector<Tensor> given = tensors_of(sums, Access::kWrite, "average_by_samples");
  const std::vector<TensorView> views = views_of(given);
  return waiting([&] { return elastic::average_by_samples(context, views, samples); });
}

void bind_random_stream(nb::module_& module) {
  using nb::arg;
  nb::class_<RandomStream>(
      module, "RandomStream",
      R"(Random numbers (Philox4x32-10) that are a function of their key and of how many were taken before:
the same on whichever worker computes a batch, as often as it is computed.)")
      .def(
          "__init__",
          [](RandomStream* memory, std::uint64_t seed, std::uint64_t epoch, std::uint64_t step,
             std::uint32_t virtual_worker) {
            new (memory) RandomStream({seed, epoch, step, virtual_worker});
          },
          arg("seed"), arg("epoch") = 0, arg("step") = 0, arg("virtual_worker") = 0)
      .def("bits", &RandomStream::operator(), "Draws 32 random bits.")
      .def("uniform", &RandomStream::uniform, "A number uniform in [0, 1).")
      .def("below", &RandomStream::below, arg("bound"),
           "A number uniform among the whole numbers below ``bound``.")
      .def("generator", &generator, nb::sig("def generator(self) -> numpy.random.Generator"),
           "A generator of NumPy that is seeded by the next numbers of this stream.");
}

void bind_results(nb::module_& module) {
  nb::class_<PythonPart>(module, "VirtualBatch", "A part of a step's batch, for this worker.")
      .def_ro("virtual_worker", &PythonPart::virtual_worker,
              R"(Its number in the step; under "per_worker" this worker's rank.)")
      .def_prop_ro(
          "samples", [](const PythonPart& part) { return part.samples; }, nb::rv_policy::automatic,
          "The indices of its samples.")
      .def_prop_ro(
          "random", [](PythonPart& part) -> RandomStream& { return part.random; },
          nb::rv_policy::reference_internal,
          "Random numbers that belong to this part, whichever worker computes it.");
  nb::class_<BatchSum> batch_sum(module, "BatchSum",
                                 "What is in the sum of a step; alike on all workers.");
  batch_sum.def_ro("contributors", &BatchSum::contributors, "The workers after the step.")
      .def_ro("samples", &BatchSum::samples, "The samples in the sum.")
      .def_ro("full_batch", &BatchSum::full_batch,
              "What it would be were this not an epoch's end: for the learning rate.");
  define_repr(batch_sum, {"contributors", "samples", "full_batch"});
  nb::class_<SampleAverage> average(module, "SampleAverage", "What is in an average_by_samples.");
  average.def_ro("contributors", &SampleAverage::contributors, "The workers that are in it.")
      .def_ro("samples", &SampleAverage::samples, "The samples of all of them.");
  define_repr(average, {"contributors", "samples"});
}

}  // namespace

void bind_global_batch(nb::module_& module, ContextClass& context) {
  using nb::arg;
  bind_random_stream(module);
  bind_results(module);
  nb::class_<PythonGlobalBatch>(
      module, "GlobalBatch",
      R"(Sums the gradients of a step's batch over all workers. It draws from the sampler and commits to
it. Put it into the State.

    batches = elastic.GlobalBatch(sampler, 64, policy="fixed_total", virtual_workers=8)

    def add_gradients(part):
        gradient[:] += ...                    # over data[part.samples]; sum() began with zeros

    total = batches.sum([gradient], add_gradients)
    weights -= rate * gradient / total.samples

Policies: "per_worker", a batch for each worker; "fixed_total", one batch for all, in equal parts for
``virtual_workers``, whose gradients the survivors compute again if a member dies within the step;
"reproducible", the same with sums that have the same bits on however many workers.)")
      .def(nb::init<Sampler&, std::size_t, const std::string&, std::size_t, Context*>(),
           arg("sampler"), arg("batch"), arg("policy") = "per_worker", arg("virtual_workers") = 1,
           arg("context").none() = nb::none(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 6>(),
           R"(``batch``: the samples of a step, of each worker under "per_worker", in all otherwise.

Raises:
    InvalidArgumentError: an option is out of range, or the batch does not divide among the
        virtual workers.)")
      .def(
          "sum", &PythonGlobalBatch::sum, arg("tensors"), arg("add_gradients"),
          nb::sig("def sum(self, tensors: collections.abc.Sequence, add_gradients: "
                  "collections.abc.Callable[[VirtualBatch], object]) -> BatchSum"),
          R"(Makes a step's sums in ``tensors``, and returns what is in them. All members call it alike.

``add_gradients(part)`` adds to the tensors, which ``sum`` sets to zero before, the sums over the
part's samples. It may be called for the same part again, and calls no collective; its exceptions
come out of ``sum``.)")
      .def_prop_ro(
          "policy",
          [](PythonGlobalBatch& self) {
            return std::string(name_in(kBatchPolicies, self.batches().options().policy));
          },
          "The policy; after a join that of the job.")
      .def_prop_ro(
          "batch", [](PythonGlobalBatch& self) { return self.batches().options().batch; },
          "The samples of a step.")
      .def_prop_ro(
          "virtual_workers",
          [](PythonGlobalBatch& self) { return self.batches().options().virtual_workers; },
          "The parts of a step.")
      .def(
          "save", [](PythonGlobalBatch& self) { return saved(self.batches()); },
          "The options as bytes, for the State.")
      .def(
          "load",
          [](PythonGlobalBatch& self, const nb::bytes& bytes) { load(self.batches(), bytes); },
          arg("bytes"), "Reverse of ``save``.");
  define(
      module, context, "average_by_samples", &average_by_samples, arg("sums"), arg("samples"),
      R"(Averages gradients over samples, for workers with unequal batches: the arrays hold sums over
``samples`` samples of this worker, and afterwards the sum over all divided by the true number of
samples. A worker without data calls it with zeros and 0. Returns a SampleAverage.)");
}

}  // namespace elastic::python
