#pragma once

#include <climits>
#include <cstddef>
#include <string>

#include "elastic/options.hpp"

namespace elastic::collectives::nccl {

/// The wishes of a job for its communicators: fields of NCCL's ncclConfig_t.
struct NcclTuning {
  int min_ctas = 0;  ///< Options::nccl_min_ctas
  int max_ctas = 0;  ///< Options::nccl_max_ctas
  NcclCtaPolicy policy = NcclCtaPolicy::kDefault;
  std::string net = {};  ///< Options::nccl_net
};

/// The oldest NCCL with the field CTAPolicy.
inline constexpr int kCtaPolicyFrom = 22700;

/// NCCL's ncclConfig_t as of 2.27, which is declared here so that older headers suffice. Versions
/// of NCCL add fields at the end alone. A library reads `size` bytes, but no more than it knows,
/// and takes the default for every field that is newer than `version`.
struct CommunicatorConfig {
  static constexpr int kUndefined = INT_MIN;

  std::size_t size = sizeof(CommunicatorConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 0;
  int blocking = 0;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
  int traffic_class = kUndefined;
  const char* comm_name = nullptr;
  int collnet_enable = kUndefined;
  int cta_policy = kUndefined;
  int shrink_share = kUndefined;
  int nvls_ctas = kUndefined;
};

/// The configuration of a communicator that does not block, for a library of `version`. It refers
/// to `tuning`, which must live until NCCL's call has returned.
CommunicatorConfig config_for(const NcclTuning& tuning, int version);

}  // namespace elastic::collectives::nccl
