#include "collectives/backend/nccl/communicator/communicator_config.hpp"

#include <algorithm>

namespace elastic::collectives::nccl {

namespace {

constexpr int kLayoutOf = 22700;  // the version of NCCL whose fields CommunicatorConfig has
constexpr int kMostCtas = 64;     // of NCCL; versions before 2.25 lower it to 32

int number_of(NcclCtaPolicy policy) {
  switch (policy) {
    case NcclCtaPolicy::kEfficiency:
      return 1;
    case NcclCtaPolicy::kZero:
      return 2;
    default:
      return CommunicatorConfig::kUndefined;
  }
}

}  // namespace

CommunicatorConfig config_for(const NcclTuning& tuning, int version) {
  CommunicatorConfig config;
  config.version = static_cast<unsigned>(std::min(version, kLayoutOf));
  if (tuning.min_ctas > 0) {
    config.min_ctas = tuning.min_ctas;
    config.max_ctas = kMostCtas;  // NCCL takes an undefined maximum for less than any minimum
  }
  if (tuning.max_ctas > 0) config.max_ctas = tuning.max_ctas;
  if (!tuning.net.empty()) config.net_name = tuning.net.c_str();
  config.shrink_share = 0;  // what a communicator shares with its parent would end with that
  config.cta_policy = number_of(tuning.policy);
  return config;
}

}  // namespace elastic::collectives::nccl
