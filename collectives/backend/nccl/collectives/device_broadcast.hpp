#pragma once

#include <utility>

#include "collectives/backend/nccl/collectives/device_work.hpp"

namespace elastic::collectives::nccl {

/// A broadcast. The root has a copy, too, because it may have to hand the result over after its
/// program has the tensor back.
class DeviceBroadcast final : public DeviceWork {
 public:
  DeviceBroadcast(Where where, const DeviceTensor& tensor, int root)
      : DeviceWork(std::move(where)), tensor_(tensor), root_(root) {}

 private:
  Status allocate() override { return make_result({&tensor_, 1}, 1); }
  Status launch(TimePoint until, const Meanwhile& meanwhile) override;

  const DeviceTensor tensor_;
  const int root_;
};

}  // namespace elastic::collectives::nccl
