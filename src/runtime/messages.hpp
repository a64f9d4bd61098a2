#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/mutex.hpp"
#include "coordinator/coordinator.hpp"
#include "elastic/results.hpp"
#include "elastic/types.hpp"

namespace elastic::runtime {

/// Messages between two members: named calls of the two, in which one gathers a block from the
/// other. The i-th send of a worker to another one with a tag, and the i-th receive there from it,
/// have the same name; those in the job and in each group are counted by themselves.
///
/// Thread-safe.
class Messages {
 public:
  using NamedCall = coordinator::Coordinator::NamedCall;

  struct Ends {
    std::string group;  ///< its mark; empty: the job
    WorkerId from = 0;
    WorkerId to = 0;
    int tag = 0;
    auto operator<=>(const Ends&) const = default;
  };

  /// The call that sends `data`, which must stay as it is until the call is complete.
  NamedCall send(const Ends& ends, const ConstTensorView& data);
  /// The call that receives into `out`, and notes the elements that came in `result`.
  NamedCall receive(const Ends& ends, const TensorView& out,
                    const std::shared_ptr<ReceivedMessage>& result);

 private:
  NamedCall call(const Ends& ends, bool sends, DType dtype);

  Mutex mutex_;
  /// Messages so far; the last member says whether this worker sends them.
  std::map<std::tuple<Ends, bool>, std::uint64_t> numbers_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::runtime
