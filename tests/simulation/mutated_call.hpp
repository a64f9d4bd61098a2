#pragma once

#include "coordinator/lane.hpp"

namespace elastic::simulation {

/// Runs an operation as Lane::run does, but with the mistake of Mutation::kForgottenTimeout: when
/// no view comes in time, the worker stays in the job, though the operation had begun.
Result<Contributors> run_without_leaving(coordinator::Lane& lane, coordinator::Operation& operation,
                                         Milliseconds view_timeout);

}  // namespace elastic::simulation
