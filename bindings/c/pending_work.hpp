#pragma once

#include <string>
#include <utility>
#include <variant>

#include <elastic/error.hpp>
#include <elastic/work.hpp>

#include "elastic.h"
#include "guard.hpp"
#include "handles.hpp"

namespace elastic::c {

/// The handle of an operation with a result of its own. `start` returns a Pending.
template <typename Start>
elastic_work* pending(const Start& start) {
  auto under_way = start();
  Work work = under_way.work();
  return new elastic_work{std::move(work), std::move(under_way)};
}

/// The part of a handle with the result of a complete operation, which has one of this kind.
template <typename UnderWay>
const UnderWay& result_of(const elastic_work* work, const char* call) {
  require(work, call, "work");
  const auto* const its = std::get_if<UnderWay>(&work->result);
  if (its == nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(call) + ": this operation has no such result");
  }
  (void)work->value.contributors();  // throws unless it is complete
  return *its;
}

}  // namespace elastic::c
