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
/// Options::log_level; it is off until `set_level`, but for warnings and errors.
spdlog::logger& get();

void set_level(LogLevel level);

/// Shown in front of every line from here on, such as "rank 2".
void set_name(const std::string& who);

/// Whether lines of `level` are written: for those whose arguments cost something to make.
bool shows(Level level);

/// Writes a line, or, where `level` is not shown, does not even put it together.
void write(Level level, fmt::string_view format, fmt::format_args arguments) noexcept;

// A line with its arguments in it. The logger is not in this header, as it takes longer to compile
// than most files that log.

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
