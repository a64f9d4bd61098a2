#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/minloc.hpp>

#include "integration/programs/check_program.hpp"

namespace elastic::testing {

/// Makes minloc and maxloc, right and wrong. Rank r gives r and -r, and all give the same last
/// value. Returns a result.
inline std::vector<float> check_locations(int rank, int size) {
  elastic::Context& context = elastic::context();
  const auto given = [&] {
    return std::vector<float>{static_cast<float>(rank), static_cast<float>(-rank), 7};
  };
  const std::vector<std::int64_t> own = {10 + rank, 20 + rank, 30 - rank};
  std::vector<float> values = given();
  std::vector<std::int64_t> indices = own;
  require(elastic::minloc(context, values, indices).size() == static_cast<std::size_t>(size),
          "contributors");
  const auto last = static_cast<float>(size - 1);
  require(values == std::vector<float>{0, -last, 7}, "values of minloc");
  require(indices == std::vector<std::int64_t>{10, 20 + size - 1, 30 - (size - 1)}, "minloc");
  const std::vector<float> least = values;
  values = given();
  indices = own;
  require(elastic::maxloc(context, values, indices).size() == static_cast<std::size_t>(size),
          "contributors");
  require(values == std::vector<float>{last, 0, 7}, "values of maxloc");
  require(indices == std::vector<std::int64_t>{10 + size - 1, 20, 30 - (size - 1)}, "maxloc");
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const auto found = elastic::minloc(context, rank == size - 1 ? nan : rank, 5 + rank);
  require(found.index == 5 + size - 1 && found.value != found.value, "minloc of NaN");
  std::vector<std::uint64_t> many(70001, static_cast<std::uint64_t>(size - rank));
  std::vector<std::int64_t> ranks(many.size(), rank);
  require(elastic::minloc(context, many, ranks).size() == static_cast<std::size_t>(size),
          "contributors");
  require(ranks == std::vector<std::int64_t>(many.size(), size - 1) && many.back() == 1,
          "minloc of many");
  require(elastic::minloc(context, std::span<float>(), std::span<std::int64_t>()).size() ==
              static_cast<std::size_t>(size),
          "contributors");
  must_fail(ErrorCode::kInvalidArgument, {"minloc: 3 indices lie at a null pointer"}, [&] {
    elastic::minloc(context, values, {static_cast<std::int64_t*>(nullptr), 3});
  });
  must_fail(ErrorCode::kInvalidArgument, {"minloc: there are 3 values and 2 indices"},
            [&] { elastic::minloc(context, values, std::span(indices).first(2)); });
  if (size == 1) return least;
  const std::string odd = "rank " + std::to_string(size - 1) + " called ";
  values = given();
  indices = own;
  const bool is_odd = rank == size - 1;
  must_fail(
      ErrorCode::kMismatch, {"rank 0 called minloc of 3 f32, " + odd + "minloc of 2 f32"}, [&] {
        const std::size_t count = is_odd ? 2 : 3;
        elastic::minloc(context, std::span(values).first(count), std::span(indices).first(count));
      });
  must_fail(ErrorCode::kMismatch, {odd + "maxloc of 3 f32"}, [&] {
    if (is_odd) elastic::maxloc(context, values, indices);
    if (!is_odd) elastic::minloc(context, values, indices);
  });
  must_fail(ErrorCode::kMismatch, {"minloc or maxloc", "allgather of u8"}, [&] {
    if (is_odd) elastic::allgather(std::vector<std::uint8_t>(4));
    if (!is_odd) elastic::minloc(context, values, indices);
  });
  require(values == given() && indices == own, "pairs after a mismatch");
  return least;
}

}  // namespace elastic::testing
