#include "collectives/backend/lost_root.hpp"

#include "collectives/backend/backend.hpp"

namespace elastic::collectives {

using transport::Fingerprint;

namespace {

constexpr std::uint32_t kLostRoot = Fingerprint::kRootWorker | Fingerprint::kNoMember;

}  // namespace

Fingerprint lost_root_call(std::uint32_t detail) {
  Fingerprint called;
  called.kind = static_cast<std::uint8_t>(Kind::kBarrier);
  called.detail = detail | kLostRoot;
  return called;
}

bool is_lost_root_call(const Fingerprint& called) {
  return called.call() == static_cast<unsigned>(Kind::kBarrier) &&
         (called.detail & kLostRoot) == kLostRoot;
}

}  // namespace elastic::collectives
