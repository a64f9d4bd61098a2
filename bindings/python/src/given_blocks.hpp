#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <elastic/results.hpp>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "taken_result.hpp"
#include "tensors.hpp"

namespace elastic::python {

/// The elements of each block; None for blocks of the same size.
using GivenCounts = std::optional<std::vector<std::size_t>>;
/// The workers that the blocks are for; None for the members that the program last saw.
using GivenWorkers = std::optional<Contributors>;

/// The blocks that a program gives to an alltoall or a scatter.
struct GivenBlocks {
  Tensor data;
  std::vector<std::size_t> counts;
  Contributors to;
  Row row;

  GivenBlocks(nb::handle tensor, const GivenCounts& given_counts, const GivenWorkers& given_to,
              Row given_row, const char* call)
      : data(tensor_of(tensor, Access::kRead, call, "tensor")),
        counts(given_counts.value_or(std::vector<std::size_t>())),
        to(given_to.value_or(Contributors())),
        row(std::move(given_row)) {}

  BlocksView view() const { return {data.view, counts, to, row}; }
};

}  // namespace elastic::python
