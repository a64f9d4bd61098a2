#include "base/log.hpp"

#include <iterator>

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "base/printable.hpp"

namespace elastic::log {

namespace {
void apply_pattern(spdlog::logger& logger, const std::string& name) {
  logger.set_pattern("[%H:%M:%S.%e] elastic" + (name.empty() ? "" : " " + name) + " %l: %v");
}

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      break;
  }
  return spdlog::level::err;
}
}  // namespace

/// Never destroyed: a program may end with an Error while the threads of a static Context, which is
/// taken apart later, have something to say.
spdlog::logger& get() {
  static spdlog::logger* const logger = [] {
    auto* const made =
        new spdlog::logger("elastic", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog::level::warn);
    made->flush_on(spdlog::level::warn);
    apply_pattern(*made, "");
    return made;
  }();
  return *logger;
}

void set_level(LogLevel level) {
  get().set_level(spdlog::level::from_str(std::string(name_in(kLogLevels, level))));
}

void set_name(const std::string& name) {
  apply_pattern(get(), name);
}

bool shows(Level level) {
  return get().should_log(spdlog_level(level));
}

/// Work never ends for want of memory to talk about it, as spdlog has it for its part.
void write(Level level, fmt::string_view format, fmt::format_args arguments) noexcept try {
  if (!shows(level)) return;
  fmt::memory_buffer line;
  fmt::vformat_to(std::back_inserter(line), format, arguments);
  get().log(spdlog_level(level), printable(fmt::to_string(line)));
} catch (const std::exception&) {
  return;
}

}  // namespace elastic::log
