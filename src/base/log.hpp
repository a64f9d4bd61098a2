#pragma once

#include <string>

#include <spdlog/spdlog.h>

namespace elastic::log {

/// The library's logger: to stderr, "elastic [rank] level message". Its level comes from
/// Options::log_level; it is off until `set_level`, but for warnings and errors.
spdlog::logger& get();

/// `level` is one of trace debug info warn error off.
void set_level(const std::string& level);

/// Shown in front of every line from here on, such as "rank 2".
void set_name(const std::string& who);

}  // namespace elastic::log
