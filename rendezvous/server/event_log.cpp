#include "rendezvous/server/event_log.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/log.hpp"

namespace elastic::rendezvous {

namespace {

/// "2026-11-24T18:02:00.123Z"
std::string time_of_day() {
  const auto now = std::chrono::system_clock::now();
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string fraction = std::to_string(1000 + milliseconds).substr(1);
  return std::string(text.data()) + "." + fraction + "Z";
}

}  // namespace

Result<EventLog> EventLog::open(const std::string& path) {
  EventLog made;
  made.path_ = path;
  made.file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!made.file_) {
    return Status(Code::kUnavailable, "--event-log " + path + ": " + std::strerror(errno));
  }
  return made;
}

void EventLog::write(const std::string& event, const Fields& fields) {
  if (!file_) return;
  nlohmann::ordered_json json = {{"time", time_of_day()}, {"event", event}};
  for (const auto& [name, value] : fields) {
    std::visit([&json, &name = name](const auto& its) { json[name] = its; }, value);
  }
  const std::string line =
      json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const ssize_t written = ::write(file_.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return;
  if (failed_) return;
  failed_ = true;
  log::error("--event-log {}: {}; events are lost", path_,
             written < 0 ? std::strerror(errno) : "the disk is full");
}

}  // namespace elastic::rendezvous
