// GradientCompressor: gradients in fewer bytes, with error feedback.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <elastic/error.hpp>
#include <elastic/gradient_compressor.hpp>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "given_op.hpp"
#include "given_or_default_context.hpp"
#include "new_arrays.hpp"
#include "repr.hpp"
#include "tensors.hpp"
#include "text.hpp"
#include "waiting.hpp"

namespace elastic::python {

namespace {

using Tensors = nb::typed<nb::dict, nb::str, nb::any>;
using Traffic = GradientCompressor::Traffic;

Compression compression_of(const std::optional<std::string>& form,
                           const GivenOrDefaultContext& context) {
  if (!form) return context.get().compression();
  if (const auto found = find_compression(*form)) return *found;
  throw Error(ErrorCode::kInvalidArgument, "GradientCompressor: the compression is '" + *form +
                                               "'; it is " + std::string(kCompressionForms));
}

/// Looks up the context in each call, since the default one may have ended.
GradientCompressor::Collectives collectives_of(GivenOrDefaultContext context) {
  return {[context](std::span<const TensorView> tensors, ReduceOp op) {
            return context.get().grouped_allreduce(tensors, op);
          },
          [context](std::span<const std::uint8_t> block) { return context.get().allgather(block); },
          [context](std::span<const CastTensor> tensors, ReduceOp op, CudaStream stream) {
            return context.get().cast_allreduce(tensors, op, stream);
          }};
}

class PythonCompressor {
 public:
  PythonCompressor(const std::optional<std::string>& compression, Context* context)
      : compressor_(collectives_of(GivenOrDefaultContext(context)),
                    compression_of(compression, GivenOrDefaultContext(context))) {}

  Contributors allreduce(const std::string& name, nb::handle tensor, GivenOp given_op) {
    const ReduceOp op = given_op.in("GradientCompressor.allreduce");
    const Tensor given =
        tensor_of(tensor, Access::kWrite, "GradientCompressor.allreduce", "tensor");
    return waiting([&] { return compressor_.allreduce(name, given.view, op, given.stream); });
  }

  Contributors grouped_allreduce(const Tensors& tensors, GivenOp given_op,
                                 const std::vector<std::string>& whole) {
    constexpr const char* kCall = "GradientCompressor.grouped_allreduce";
    const ReduceOp op = given_op.in(kCall);
    std::vector<std::string> names;
    std::vector<Tensor> given;
    for (const auto& [key, value] : tensors) {
      names.push_back(text_of(key));
      const std::string what = "tensor '" + names.back() + "'";
      given.push_back(tensor_of(value, Access::kWrite, kCall, what.c_str()));
    }
    for (const std::string& name : whole) {
      if (std::ranges::find(names, name) == names.end()) {
        throw Error(ErrorCode::kInvalidArgument, std::string(kCall) + ": whole names '" + name +
                                                     "', which is not among the tensors");
      }
    }
    std::vector<NamedTensor> named;
    for (std::size_t at = 0; at < names.size(); ++at) {
      const bool uncompressed = std::ranges::find(whole, names[at]) != whole.end();
      named.push_back({names[at], given[at].view, uncompressed});
    }
    return waiting([&] { return compressor_.grouped_allreduce(named, op, stream_of(given)); });
  }

  void rescale(std::pair<double, double> before, std::pair<double, double> now) {
    compressor_.rescale({before.first, before.second}, {now.first, now.second});
  }

  GradientCompressor& compressor() { return compressor_; }

 private:
  GradientCompressor compressor_;
};

const char* kind_of(PythonCompressor& self) {
  static constexpr std::array kKinds{"none", "f16", "bf16", "int8", "two_bit", "top_k"};
  return kKinds.at(static_cast<std::size_t>(self.compressor().compression().kind));
}

void bind_traffic(nb::module_& module) {
  nb::class_<Traffic> traffic(
      module, "Traffic",
      "Bytes of one call of a GradientCompressor, or of all, and what was not sent.");
  traffic.def_ro("tensors", &Traffic::tensors, "Bytes of the tensors.")
      .def_ro("encoded", &Traffic::encoded, "Bytes that this worker's contribution was encoded in.")
      .def_ro("sent", &Traffic::sent, "Bytes that this worker sent over links.")
      .def_ro("sent_uncompressed", &Traffic::sent_uncompressed,
              "Bytes that an allreduce without compression sends.")
      .def_ro("non_finite", &Traffic::non_finite, "Elements of results that are NaN or Inf.")
      .def_ro("residual_norm", &Traffic::residual_norm,
              "Euclidean norm of what this worker keeps for the next call.");
  define_repr(traffic,
              {"tensors", "encoded", "sent", "sent_uncompressed", "non_finite", "residual_norm"});
}

}  // namespace

void bind_gradient_compressor(nb::module_& module) {
  using nb::arg;
  bind_traffic(module);
  const auto sum = arg("op") = ReduceOp::kSum;
  nb::class_<PythonCompressor>(
      module, "GradientCompressor",
      R"(Allreduces gradients in fewer bytes, and keeps what was not sent for the next call (error
feedback).

    compressor = elastic.GradientCompressor("int8")
    contributors = compressor.grouped_allreduce({"weights": gradient})   # in place

Results are bit-identical on all ranks. After the death of a member a call returns the sum over
exactly its contributors; when it raises, tensors and residuals are as they were. Residuals belong to
this worker: they are no part of the State, and a joiner's are zero.)")
      .def(nb::init<const std::optional<std::string>&, Context*>(), arg("compression") = nb::none(),
           arg("context").none() = nb::none(), nb::keep_alive<1, 3>(),
           R"(``compression``: "none", "f16", "f16:SCALE", "bf16", "int8", "int8:BLOCK", "two_bit",
"two_bit:THRESHOLD", "top_k:RATIO" or "top_k:RATIO:MOMENTUM:WARM_UP_STEPS"; by default the option
``compression`` of ``init``. The same on all members.

Raises:
    InvalidArgumentError: no such compression, or a parameter out of range.)")
      .def(
          "allreduce", &PythonCompressor::allreduce, arg("name"), arg("tensor"), sum,
          R"(Sums or averages ``tensor``, of float32, over all members in place. Its residual is kept under
``name``. Returns the Contributors.

Raises:
    InvalidArgumentError: another element type, op or size than under this name before.
    MismatchError: members give different names, sizes or ops; on all of them.)")
      .def(
          "grouped_allreduce", &PythonCompressor::grouped_allreduce, arg("tensors"), sum,
          arg("whole") = std::vector<std::string>{},
          R"(The same for a dict of tensors by name, as one unit: after a failure either all of them hold
sums over the same contributors, or none was changed. Those named in ``whole`` are sent uncompressed,
such as losses and counts.)")
      .def(
          "send_whole",
          [](PythonCompressor& self, bool whole) { self.compressor().send_whole(whole); },
          arg("whole") = true,
          "Sends everything, residuals included, from the next call on: for a worker that is to "
          "leave.")
      .def("rescale", &PythonCompressor::rescale, arg("before"), arg("now"),
           "Call when the rate or the batch has changed: both are pairs of (rate, what sums are "
           "divided by).")
      .def(
          "reset", [](PythonCompressor& self) { self.compressor().reset(); },
          "Forgets all residuals: for a worker that comes back after an eviction.")
      .def(
          "begin_at",
          [](PythonCompressor& self, std::uint64_t step) { self.compressor().begin_at(step); },
          arg("step"), "Counts calls from ``step``, for joiners, which need no warm-up.")
      .def(
          "residual",
          [](PythonCompressor& self, const std::string& name) {
            return new_array(self.compressor().residual(name));
          },
          arg("name"),
          "A copy of what was not sent of the tensor of this name; empty before its first call.")
      .def_prop_ro("kind", &kind_of, R"("none", "f16", "bf16", "int8", "two_bit" or "top_k".)")
      .def_prop_ro(
          "latest", [](PythonCompressor& self) { return self.compressor().latest(); },
          "The Traffic of the latest call that returned.")
      .def_prop_ro(
          "total", [](PythonCompressor& self) { return self.compressor().total(); },
          "The Traffic of all calls that returned.");
}

}  // namespace elastic::python
