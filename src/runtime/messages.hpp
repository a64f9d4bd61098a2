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
  using NamedCall = coordinator::NamedCall;

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
  /// Counts the messages between two ends. Shared with calls under way.
  struct Numbers {
    /// The last member says whether this worker sends them.
    using Key = std::tuple<Ends, bool>;
    std::uint64_t next(const Key& key);
    /// The message of this number has left nothing behind: if it was the latest, the next one is
    /// the same message to the other end.
    void withdraw(const Key& key, std::uint64_t number);

    Mutex mutex;
    std::map<Key, std::uint64_t> latest ELASTIC_GUARDED_BY(mutex);
  };

  NamedCall call(const Ends& ends, bool sends, DType dtype);

  const std::shared_ptr<Numbers> numbers_ = std::make_shared<Numbers>();
};

}  // namespace elastic::runtime
