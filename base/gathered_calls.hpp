#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace elastic {

/// A collective of the public interface that is an allgather of bytes on the way. Its row is like
/// the shape of an array's rows in an allgather of arrays: members compare it before they exchange
/// anything. So no other call takes the blocks for its own, and errors can name the call.
struct GatheredCall {
  std::string_view name;
  std::array<std::size_t, 1> row;
};

inline constexpr GatheredCall kLocationCall{"minloc or maxloc", {0x6d696e6c6f63}};
/// The numbers of rows, and then the rows themselves.
inline constexpr GatheredCall kSparseCall{"sparse_allreduce", {0x737061727365}};
inline constexpr GatheredCall kSparseRowsCall{"the rows of sparse_allreduce", {0x726f7773}};

}  // namespace elastic
