#pragma once

#include <optional>
#include <string>

#include "base/backend_settings.hpp"
#include "collectives/backend/nccl/communicator/communicator_config.hpp"
#include "elastic/options.hpp"

namespace elastic::collectives::nccl {

/// The settings that only the backend nccl has.
struct NcclSettings {
  std::string library;  ///< Options::nccl_library
  bool waits = false;   ///< wait for NCCL, instead of using host memory until it is ready
  NcclRegister registers = NcclRegister::kAuto;  ///< Options::nccl_register
  NcclShrink shrinks = NcclShrink::kAuto;        ///< Options::nccl_shrink
  bool overlaps = true;                          ///< Options::nccl_overlap
  NcclTuning tuning = {};
  /// The host's name in NCCL (NCCL_HOSTID); empty: the default. None: NCCL is set to let ranks of
  /// one host share a device, so that the ranks do not check for it.
  std::optional<std::string> host = "";
};

NcclSettings parse_settings(const BackendSettings& settings);

}  // namespace elastic::collectives::nccl
