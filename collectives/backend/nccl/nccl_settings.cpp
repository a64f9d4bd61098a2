#include "collectives/backend/nccl/nccl_settings.hpp"

namespace elastic::collectives::nccl {

NcclSettings parse_settings(const BackendSettings& settings) {
  const auto value = [&](const char* name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string() : found->second;
  };
  NcclSettings parsed;
  parsed.library = value("ELASTIC_NCCL_LIBRARY");
  parsed.waits =
      find_named(kNcclMeanwhiles, value("ELASTIC_NCCL_MEANWHILE")) == NcclMeanwhile::kWait;
  parsed.registers =
      find_named(kNcclRegisters, value("ELASTIC_NCCL_REGISTER")).value_or(NcclRegister::kAuto);
  const std::string shared = value("NCCL_MULTI_RANK_GPU_ENABLE");
  if (settings.contains("NCCL_MULTI_RANK_GPU_ENABLE") && shared != "0") {
    parsed.host.reset();
  } else {
    parsed.host = value("NCCL_HOSTID");
  }
  return parsed;
}

}  // namespace elastic::collectives::nccl
