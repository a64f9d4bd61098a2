#pragma once

#include "base/config/environment.hpp"
#include "base/status.hpp"
#include "elastic/options.hpp"
#include "runtime/control.hpp"

namespace elastic::runtime {

/// Finds the job that this process was started for (server, job id, secret), and draws the
/// incarnation. Sets `options.slot` from the launcher, if it is unset. kInvalidArgument and
/// kUnavailable say what is missing and how to set it.
Result<Identity> find_job(Options& options, const EnvironmentMap& environment);

/// Draws another incarnation: `identity` is then another worker of the same job.
void draw_incarnation(Identity& identity);

}  // namespace elastic::runtime
