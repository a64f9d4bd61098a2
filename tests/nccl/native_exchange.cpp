#include "nccl/native_exchange.hpp"

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace elastic::collectives::nccl {

namespace {

Result<std::vector<std::string>> allgather(Backend& backend, std::uint64_t position,
                                           const std::string& mine) {
  Call call;
  call.kind = Kind::kAllgather;
  call.sections = {{DType::kU8, mine.size(), 0}};
  call.fingerprint.kind = static_cast<std::uint8_t>(Kind::kAllgather);
  call.fingerprint.dtype = static_cast<std::uint8_t>(DType::kU8);
  Payload payload;
  payload.data.resize(mine.size());
  if (!mine.empty()) std::memcpy(payload.data.data(), mine.data(), mine.size());
  if (Status status = backend.run(position, call, payload); !status.ok()) return status;

  std::vector<std::string> messages;
  std::size_t offset = 0;
  for (const std::uint64_t count : payload.counts()) {
    messages.emplace_back(reinterpret_cast<const char*>(payload.data.data() + offset), count);
    offset += count;
  }
  return messages;
}

}  // namespace

Exchange exchange_over(std::shared_ptr<Backend> backend, std::uint64_t position) {
  Exchange exchange;
  exchange.allgather = [backend, next = position](const std::string& mine) mutable {
    return allgather(*backend, next++, mine);
  };
  exchange.call_off = [backend] { backend->abort(); };
  return exchange;
}

}  // namespace elastic::collectives::nccl
