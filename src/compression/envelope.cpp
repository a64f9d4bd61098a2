#include "compression/envelope.hpp"

#include <cstring>
#include <string>

#include "base/hash.hpp"
#include "elastic/error.hpp"

namespace elastic::codecs {
namespace {

using Fingerprint = std::uint64_t;

Fingerprint fingerprint(std::span<const NamedTensor> tensors, ReduceOp op) {
  PiecewiseHash hash;
  hash.add(std::as_bytes(std::span(&op, 1)));
  for (const NamedTensor& tensor : tensors) {
    const std::uint64_t sizes[] = {tensor.name.size(), tensor.data.count};
    hash.add(std::as_bytes(std::span(sizes)));
    hash.add(std::as_bytes(std::span(tensor.name)));
  }
  return hash.value();
}

Fingerprint fingerprint_of(std::span<const std::uint8_t> message) {
  Fingerprint value = 0;
  if (message.size() >= sizeof(value)) std::memcpy(&value, message.data(), sizeof(value));
  return value;
}

}  // namespace

Message begin_message(std::span<const NamedTensor> tensors, ReduceOp op) {
  const Fingerprint value = fingerprint(tensors, op);
  Message message(sizeof(value));
  std::memcpy(message.data(), &value, sizeof(value));
  return message;
}

std::vector<std::span<const std::uint8_t>> open_messages(const Gathered<std::uint8_t>& gathered) {
  std::vector<std::span<const std::uint8_t>> messages;
  std::size_t at = 0;
  for (const std::size_t count : gathered.counts) {
    messages.push_back(std::span(gathered.values).subspan(at, count));
    at += count;
    const auto rank = static_cast<int>(messages.size() - 1);
    if (count < sizeof(Fingerprint) ||
        fingerprint_of(messages.back()) != fingerprint_of(messages.front())) {
      throw Error(ErrorCode::kMismatch,
                  "GradientCompressor: rank " + std::to_string(rank) +
                      " gave tensors of other names, sizes or op than rank 0; give the same on all",
                  rank);
    }
  }
  for (auto& message : messages) message = message.subspan(sizeof(Fingerprint));
  return messages;
}

}  // namespace elastic::codecs
