#pragma once

#include "collectives/backend/backend.hpp"

namespace elastic::collectives {

/// Completes a reduction by the only rank of a view, of which nothing was combined: a logical
/// result is 0 or 1 all the same. Other operations leave the contribution as it is.
/// \{
void complete_alone(const Call& call, Payload& payload);
void complete_alone(const SmallCall& call, Payload& payload);
/// \}

}  // namespace elastic::collectives
