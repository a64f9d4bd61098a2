#include "collectives/backend/payload.hpp"

#include <cstring>
#include <utility>

namespace elastic::collectives {

void Payload::clear() {
  data.resize(0);
  direct.clear();
  undo = nullptr;
  on_device = nullptr;
  device_result.reset();
  elsewhere.clear();
  counts.clear();
  in_hand = false;
}

void Payload::gather() {
  for (const DirectTensor& tensor : direct) elsewhere.emplace_back(tensor.output, tensor.bytes());
  direct.clear();
  std::size_t bytes = data.size();
  for (const auto& piece : elsewhere) bytes = aligned(bytes) + piece.size();
  if (bytes == data.size()) return elsewhere.clear();
  Buffer whole;
  whole.resize(bytes);
  std::size_t at = data.size();
  if (at > 0) std::memcpy(whole.data(), data.data(), at);
  for (const auto& piece : elsewhere) {
    at = aligned(at);
    if (!piece.empty()) std::memcpy(whole.data() + at, piece.data(), piece.size());
    at += piece.size();
  }
  elsewhere.clear();
  data = std::move(whole);
}

Status Payload::bring_to_host() {
  if (!device_result) return {};
  Status status = device_result->gather(data);
  device_result.reset();
  return status;
}

}  // namespace elastic::collectives
