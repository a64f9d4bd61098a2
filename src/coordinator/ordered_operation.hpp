#pragma once

#include <memory>

#include "coordinator/named_call.hpp"
#include "coordinator/negotiation.hpp"
#include "coordinator/operation.hpp"

namespace elastic::coordinator {

/// Whether the order is an allreduce of named tensors that the backend gets on a device.
bool is_on_device(const OrderItem& order, const Submissions& pending);

/// Makes the part of this rank in an order that all ranks have agreed on. `pending` has the calls
/// of this rank; those in which it has no part, because it has joined or is outside of their group,
/// are missing there.
std::unique_ptr<Operation> operation_for(const OrderItem& order, const Submissions& pending,
                                         const Members& members);

}  // namespace elastic::coordinator
