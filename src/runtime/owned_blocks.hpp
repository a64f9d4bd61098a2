#pragma once

#include <cstddef>
#include <vector>

#include "elastic/results.hpp"
#include "runtime/operation_runner.hpp"

namespace elastic::runtime {

/// A BlocksView for an asynchronous call: with lists of its own, and the workers that the blocks
/// are for as the program saw them when it made the call.
class OwnedBlocks {
 public:
  OwnedBlocks(const BlocksView& blocks, const OperationRunner& runner)
      : data_(blocks.data),
        counts_(blocks.counts.begin(), blocks.counts.end()),
        to_(blocks.to.size() > 0 ? blocks.to : runner.seen()),
        row_(blocks.row.begin(), blocks.row.end()) {}

  BlocksView view() const { return {data_, counts_, to_, row_}; }

 private:
  ConstTensorView data_;
  std::vector<std::size_t> counts_;
  Contributors to_;
  std::vector<std::size_t> row_;
};

}  // namespace elastic::runtime
