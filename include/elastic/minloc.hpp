#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "elastic/collectives.hpp"
#include "elastic/detail/export.hpp"
#include "elastic/detail/ranges.hpp"
#include "elastic/results.hpp"
#include "elastic/types.hpp"

namespace elastic {

/// Gives all members, element by element, the least (`minloc`) or the greatest (`maxloc`) of all
/// members' values, and the index that came with it: MPI_MINLOC and MPI_MAXLOC. An index is any
/// number that the program chooses, such as a rank or the place of a sample. The pairs of `values`
/// and `indices` are overwritten by those of the result.
///
///     std::vector<float> losses = ...;            // of several models, on this member's samples
///     std::vector<std::int64_t> samples = ...;    // where each is least
///     elastic::minloc(elastic::context(), losses, samples);
///
/// Among equal values the one with the smallest index is taken. A NaN counts as less than every
/// number in a `minloc` and as greater in a `maxloc`, so that it is seen, as under ReduceOp::kMin
/// and kMax; all NaNs are equal, and so are 0.0 and -0.0. For bools false is less than true. The
/// bits are the same on all members, which are those of a Context or of a Group.
///
/// One operation carries values and indices, so both have the same contributors after a death. All
/// pairs go to all members: with n members each receives n times the size of its own, and has
/// memory for that during the call. So it suits small tensors; it is right for all.
/// \returns the workers that contributed to the result.
/// \throws Error as Context::allgather; also kMismatch, on all members, if one calls the other of
///   the two, or gives another number or type of values; kInvalidArgument, on this member alone,
///   for values that are not as many as the indices, and for a tensor outside of host memory. The
///   values and indices are as they were then.
/// \{
ELASTIC_API Contributors minloc(Collectives& members, TensorView values,
                                std::span<std::int64_t> indices);
ELASTIC_API Contributors maxloc(Collectives& members, TensorView values,
                                std::span<std::int64_t> indices);
template <detail::ContiguousRange R>
Contributors minloc(Collectives& members, R&& values, std::span<std::int64_t> indices) {
  return minloc(members, view(detail::output_of(std::forward<R>(values))), indices);
}
template <detail::ContiguousRange R>
Contributors maxloc(Collectives& members, R&& values, std::span<std::int64_t> indices) {
  return maxloc(members, view(detail::output_of(std::forward<R>(values))), indices);
}
/// \}

/// A value, and the index that came with it.
template <detail::Number T>
struct ValueAndIndex {
  T value;             ///< the least or the greatest
  std::int64_t index;  ///< that came with it; of equal values the smallest
};

/// The same for one value of each member.
/// \returns the least or the greatest of them, with its index.
/// \throws Error as above.
/// \{
template <detail::Number T>
[[nodiscard]] ValueAndIndex<T> minloc(Collectives& members, T value, std::int64_t index) {
  detail::require_element<T>();
  minloc(members, view(std::span<T>(&value, 1)), std::span<std::int64_t>(&index, 1));
  return {value, index};
}
template <detail::Number T>
[[nodiscard]] ValueAndIndex<T> maxloc(Collectives& members, T value, std::int64_t index) {
  detail::require_element<T>();
  maxloc(members, view(std::span<T>(&value, 1)), std::span<std::int64_t>(&index, 1));
  return {value, index};
}
/// \}

}  // namespace elastic
