// What a training needs besides collectives: the sampler and learning rates.
#include <string>
#include <vector>

#include <elastic/training.hpp>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "tensors.hpp"

namespace elastic::python {

namespace {

/// Indices of samples as NumPy takes them: a copy, as the sampler's own is valid for one call.
nb::object indices(std::span<const std::size_t> share) {
  static_assert(sizeof(std::size_t) == sizeof(std::int64_t));
  auto* const copy = new std::int64_t[share.size() + 1];
  std::copy(share.begin(), share.end(), copy);
  const nb::capsule owner(
      copy, [](void* memory) noexcept { delete[] static_cast<std::int64_t*>(memory); });
  return nb::cast(nb::ndarray<nb::numpy, std::int64_t>(copy, {share.size()}, owner));
}

void commit(Sampler& sampler, nb::object contributors) {
  if (nb::isinstance<Contributors>(contributors)) {
    sampler.commit(nb::cast<const Contributors&>(contributors));
  } else {
    sampler.commit(
        std::span<const Contributors>(nb::cast<std::vector<Contributors>>(contributors)));
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
          "next", [](Sampler& sampler, std::size_t batch) { return indices(sampler.next(batch)); },
          arg("batch_per_worker"), nb::sig("def next(self, batch_per_worker: int) -> typing.Any"),
          R"(Draws the next global batch, and returns this worker's share: an array of int64 with the
indices of samples. At an epoch's end the share may be short or empty; the worker still takes part
in the step.)")
      .def(
          "commit", &commit, arg("contributors"),
          nb::sig("def commit(self, contributors: Contributors | typing.Sequence[Contributors]) -> "
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
}

}  // namespace elastic::python
