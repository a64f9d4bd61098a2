#include "collectives/backend/nccl/memory/registrations.hpp"

#include <string>
#include <utility>

#include "base/log.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"

namespace elastic::collectives::nccl {

Result<device::BlockPool::Block> Registrations::take(
    const std::shared_ptr<Communicator>& communicator, SharedDevice& device, std::size_t lane,
    std::size_t bytes, TimePoint until) {
  if (with_.lock() != communicator) {
    with_ = communicator;
    stopped_ = false;
    registered_.clear();
  }
  if (stopped_ || bytes == 0) return device::BlockPool::Block();
  auto lent = device.lend_registrable(lane, bytes);
  if (!lent.ok() || lent.value().data() == nullptr) return lent;
  const Status added = add(*communicator, lent.value(), until);
  if (added.ok()) return lent;
  stop();
  log::debug("nccl: memory is not registered with this communicator: {}", added.message());
  return device::BlockPool::Block();
}

Status Registrations::add(Communicator& communicator, const device::BlockPool::Block& block,
                          TimePoint until) {
  if (registered_.contains(block.data())) return {};
  Status refused;
  Status called = communicator.perform(
      "ncclCommRegister",
      [&](const Api& api, ncclComm* comm) -> int {
        void* handle = nullptr;
        const ncclResult_t result = api.comm_register(comm, block.data(), block.size(), &handle);
        if (result != ncclSuccess) {
          refused = Status(Code::kUnavailable, api.get_error_string(result));
        } else if (handle == nullptr) {
          refused = Status(Code::kUnavailable, "NCCL has no use for that here");
        }
        // The communicator also works without registered memory.
        return ncclSuccess;
      },
      until);
  if (!called.ok()) return called;
  if (refused.ok()) registered_.insert(block.data());
  return refused;
}

}  // namespace elastic::collectives::nccl
