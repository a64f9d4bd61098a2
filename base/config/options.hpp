#pragma once

#include <string_view>

#include "base/config/environment.hpp"
#include "base/status.hpp"
#include "elastic/options.hpp"

namespace elastic {

/// `options` as filled from code, overridden by what `environment` sets. kInvalidArgument for an
/// unknown ELASTIC_* name (with the nearest known one) and for a malformed or impossible value,
/// naming variable or field, the value, and what is allowed.
Result<Options> resolve(Options options, const EnvironmentMap& environment);

/// Does the work of elastic::set_option.
Status set_by_name(Options& options, std::string_view name, std::string_view value);

}  // namespace elastic
