#pragma once

#include <cstddef>
#include <vector>

#include "elastic/sparse_allreduce.hpp"
#include "elastic/types.hpp"

namespace elastic::runtime {

/// The rows of a member as a dense tensor, whose sum over all members is that of their sparse rows:
/// all rows of the whole tensor, with zeros for those that the member does not give, and behind
/// them an element for each row, the mark, which is 1 if the member gives the row.
///
/// Pure. The indices are rows, and the tensor is one that memory can hold (check_offers).
class DenseRows {
 public:
  /// Adds the rows with the same index in their order. `rows` need not outlive this.
  /// \throws std::bad_alloc: there is no memory for the tensor.
  explicit DenseRows(const SparseRowsView& rows);

  TensorView view();
  /// After the sum over the members: the rows with a mark. They are not divided, and have no
  /// contributors yet.
  SparseRows marked() const;

 private:
  DType dtype_;
  std::size_t width_;
  std::size_t rows_;
  std::vector<std::byte> bytes_;
};

}  // namespace elastic::runtime
