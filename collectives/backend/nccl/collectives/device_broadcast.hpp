#pragma once

#include <cstddef>
#include <utility>

#include "collectives/backend/nccl/collectives/device_work.hpp"

namespace elastic::collectives::nccl {

/// A broadcast. The root's tensor is read in its place.
class DeviceBroadcast final : public DeviceWork {
 public:
  DeviceBroadcast(Where where, const DeviceTensor& tensor, int root, bool is_root)
      : DeviceWork(std::move(where)), tensor_(tensor), root_(root), is_root_(is_root) {}

 private:
  Status allocate() override {
    return is_root_ ? make_result({}, 1) : make_result({&tensor_, 1}, 1);
  }
  std::size_t bytes() const override { return tensor_.bytes(); }
  Status launch(TimePoint until, const Meanwhile& meanwhile) override;

  const DeviceTensor tensor_;
  const int root_;
  const bool is_root_;
};

}  // namespace elastic::collectives::nccl
