#include "collectives/transport/ring/mailbox.hpp"

namespace elastic::transport {

const std::byte* Mailbox::post(const OpTag& tag, const Fingerprint& fingerprint,
                               std::span<const std::byte> payload) {
  Letter& letter = out_.letters[tag.position % 2];
  letter.bytes = payload.size();
  letter.fingerprint = fingerprint;
  writer_.copy(letter.payload, 0, payload.data(), payload.size());
  letter.tag.store(number_of(tag), std::memory_order_release);
  doorbell_.ring_if(peer_sleeps_);
  return letter.payload;
}

}  // namespace elastic::transport
