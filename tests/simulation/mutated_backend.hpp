#pragma once

#include <memory>

#include "collectives/backend/backend.hpp"

namespace elastic::simulation {

/// A backend that takes a result (Mutation::kEarlyRelease) or an error (Mutation::kEarlyError) for
/// settled as soon as this worker has it.
std::unique_ptr<collectives::Backend> settling_early(std::unique_ptr<collectives::Backend> backend,
                                                     bool results, bool errors);

}  // namespace elastic::simulation
