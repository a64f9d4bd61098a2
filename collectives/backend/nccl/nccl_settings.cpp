#include "collectives/backend/nccl/nccl_settings.hpp"

#include <charconv>

namespace elastic::collectives::nccl {

namespace {

/// 0 where there is none: base/config has checked it.
int number(const std::string& text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

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
  parsed.shrinks =
      find_named(kNcclShrinks, value("ELASTIC_NCCL_SHRINK")).value_or(NcclShrink::kAuto);
  parsed.overlaps = find_named(kNcclOverlaps, value("ELASTIC_NCCL_OVERLAP")) != NcclOverlap::kOff;
  parsed.tuning = {.min_ctas = number(value("ELASTIC_NCCL_MIN_CTAS")),
                   .max_ctas = number(value("ELASTIC_NCCL_MAX_CTAS")),
                   .policy = find_named(kNcclCtaPolicies, value("ELASTIC_NCCL_CTA_POLICY"))
                                 .value_or(NcclCtaPolicy::kDefault),
                   .net = value("ELASTIC_NCCL_NET")};
  const std::string shared = value("NCCL_MULTI_RANK_GPU_ENABLE");
  if (settings.contains("NCCL_MULTI_RANK_GPU_ENABLE") && shared != "0") {
    parsed.host.reset();
  } else {
    parsed.host = value("NCCL_HOSTID");
  }
  return parsed;
}

}  // namespace elastic::collectives::nccl
