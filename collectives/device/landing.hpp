#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "base/status.hpp"
#include "collectives/device/staged_tensors.hpp"
#include "elastic/types.hpp"

namespace elastic::device {

/// The results of one operation on their way to tensors on devices. All ranks have the operation;
/// what is left is the device's copying, for which no thread of the library waits. Keeps the
/// tensors and their memory until it is over.
///
/// Any thread.
class Landing {
 public:
  /// `all`: sent back already. `failed` is called at most once, with the device's error, and
  /// returns that of the operation; never after `wait` has returned.
  Landing(std::vector<std::shared_ptr<StagedTensors>> all,
          std::function<Status(const Status&)> failed)
      : last_(last_of(all)), failed_(std::move(failed)), all_(std::move(all)) {}

  /// Looks whether all results are in their tensors, or will never be.
  bool is_over();
  /// Waits until then. The same each time.
  Status wait();
  /// Has what is queued on `stream` from now on wait for the results of `its`, one of `all`, all of
  /// which are on one device. Does not wait itself.
  Status put_behind(const StagedTensors& its, CudaStream stream);

 private:
  using Tensors = std::vector<std::shared_ptr<StagedTensors>>;
  static Tensors last_of(const Tensors& all);
  Status end(Status status);

  const Tensors last_;
  const std::function<Status(const Status&)> failed_;
  Mutex mutex_;
  ConditionVariable changed_;
  Tensors all_ ELASTIC_GUARDED_BY(mutex_);
  bool awaited_ ELASTIC_GUARDED_BY(mutex_) = false;  // a thread waits for the device
  std::optional<Status> outcome_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::device
