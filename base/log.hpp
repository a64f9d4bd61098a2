#pragma once

#include <cstdint>
#include <string>

#include <fmt/core.h>

#include "elastic/options.hpp"

namespace spdlog {
class logger;
}  // namespace spdlog

namespace elastic::log {

enum class Level : std::uint8_t { kDebug, kInfo, kWarn, kError };

/// The library's logger: to stderr, "elastic [rank] level message". Its level comes from
/// Options::log_level; until `set_level` it writes only warnings and errors.
spdlog::logger& get();

void set_level(LogLevel level);

/// Every line from here on begins with `name`, such as "rank 2".
void set_name(const std::string& name);

/// Whether lines of `level` are written. Ask before you make costly arguments.
bool shows(Level level);

/// Writes a line. If lines of `level` are not shown, does not format it.
void write(Level level, fmt::string_view format, fmt::format_args arguments) noexcept;

// Each formats a line and writes it. The logger itself is not in this header, because it takes
// longer to compile than most files that log.

template <typename... Arguments>
void debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write(Level::kDebug, format, fmt::make_format_args(arguments...));
}

template <typename... Arguments>
void info(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write(Level::kInfo, format, fmt::make_format_args(arguments...));
}

template <typename... Arguments>
void warn(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write(Level::kWarn, format, fmt::make_format_args(arguments...));
}

template <typename... Arguments>
void error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write(Level::kError, format, fmt::make_format_args(arguments...));
}

}  // namespace elastic::log
