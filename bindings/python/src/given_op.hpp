#pragma once

#include <string>

#include <elastic/elastic.hpp>
#include <nanobind/nanobind.h>

#include "text.hpp"

namespace elastic::python {

/// The argument `op` of a collective, which stubs show as a ReduceOp. Anything is taken, so that a
/// name such as "avg" gets an error that says what to give.
class GivenOp {
 public:
  GivenOp() = default;
  explicit GivenOp(nanobind::handle given) : given_(given) {}

  /// \throws Error kInvalidArgument, which names `call`: it is no ReduceOp. Requires the GIL.
  ReduceOp in(const std::string& call) const {
    ReduceOp op{};
    if (nanobind::try_cast(given_, op, false)) return op;
    throw Error(ErrorCode::kInvalidArgument,
                call + ": op is " + text_of(nanobind::repr(given_)) +
                    "; give elastic.SUM, AVERAGE, MIN, MAX, PRODUCT or another elastic.ReduceOp");
  }

 private:
  nanobind::handle given_;
};

}  // namespace elastic::python

template <>
struct nanobind::detail::type_caster<elastic::python::GivenOp> {
  NB_TYPE_CASTER(elastic::python::GivenOp, make_caster<elastic::ReduceOp>::Name)

  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    value = elastic::python::GivenOp(source);
    return true;
  }
};
