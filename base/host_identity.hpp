#pragma once

#include <string>

namespace elastic {

/// Identifies machine, network namespace and user: equal for processes that can share memory and
/// reach each other's abstract AF_UNIX sockets.
std::string host_identity();

/// The machine's name, for people.
std::string host_name();

/// Whether no process listens on the abstract AF_UNIX socket `name` of this network namespace. Does
/// not block. False also if that cannot be found out.
bool has_no_listener(const std::string& name);

}  // namespace elastic
