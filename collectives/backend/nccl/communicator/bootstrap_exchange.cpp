#include "collectives/backend/nccl/communicator/bootstrap_exchange.hpp"

#include <utility>

namespace elastic::collectives::nccl {

Result<std::vector<std::string>> BootstrapExchange::allgather(const std::string& mine) {
  MutexLock lock(mutex_);
  mine_ = mine.substr(0, kMostBytes);
  changed_.wait(lock, [&]() ELASTIC_REQUIRES(mutex_) { return called_off_ || delivered_; });
  if (!delivered_) return Status(Code::kAborted, "the view is being changed");
  return *std::exchange(delivered_, std::nullopt);
}

void BootstrapExchange::call_off() {
  {
    const MutexLock lock(mutex_);
    called_off_ = true;
  }
  changed_.notify_all();
}

std::optional<BootstrapMessage> BootstrapExchange::waiting() const {
  const MutexLock lock(mutex_);
  if (called_off_ || !mine_) return std::nullopt;
  return BootstrapMessage{round_, *mine_};
}

void BootstrapExchange::deliver(std::uint8_t round, std::vector<std::string> messages) {
  {
    const MutexLock lock(mutex_);
    if (round != round_ || !mine_) return;
    delivered_ = std::move(messages);
    mine_.reset();
    ++round_;
  }
  changed_.notify_all();
}

std::uint8_t BootstrapExchange::rounds() const {
  const MutexLock lock(mutex_);
  return round_;
}

Exchange exchange_by(std::shared_ptr<BootstrapExchange> bootstrap) {
  Exchange exchange;
  exchange.allgather = [bootstrap](const std::string& mine) { return bootstrap->allgather(mine); };
  exchange.call_off = [bootstrap] { bootstrap->call_off(); };
  return exchange;
}

}  // namespace elastic::collectives::nccl
