#include "collectives/transport/ring/eager_channel.hpp"

namespace elastic::transport {

const std::byte* EagerChannel::post(const OpTag& tag, const Fingerprint& fingerprint,
                                    std::span<const std::byte> payload) {
  EagerSlot& slot = out_.slots[tag.position % 2];
  slot.bytes = payload.size();
  slot.fingerprint = fingerprint;
  writer_.copy(slot.payload, 0, payload.data(), payload.size());
  slot.tag.store(number_of(tag), std::memory_order_release);
  doorbell_.ring_if(peer_sleeps_);
  return slot.payload;
}

}  // namespace elastic::transport
