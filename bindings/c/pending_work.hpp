#pragma once

#include <utility>

#include <elastic/work.hpp>

#include "elastic.h"
#include "handles.hpp"

namespace elastic::c {

/// The handle of an operation with a result of its own. `start` returns a Pending.
template <typename Start>
elastic_work* pending(const Start& start) {
  auto under_way = start();
  Work work = under_way.work();
  return new elastic_work{std::move(work), std::move(under_way)};
}

}  // namespace elastic::c
