#pragma once

#include <string>

#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// What the first difference between a worker's state and the job's is, for people; "" for none.
std::string layout_difference(const Layout& job, const Layout& worker);

}  // namespace elastic::rendezvous
