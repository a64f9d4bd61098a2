#include "runtime/flight_log.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "base/config/environment.hpp"
#include "base/host_identity.hpp"
#include "base/log.hpp"
#include "base/thread_name.hpp"
#include "base/unique_fd.hpp"
#include "base/wall_clock.hpp"
#include "collectives/transport/frame.hpp"
#include "coordinator/group_names.hpp"
#include "rendezvous/launcher/private_folder.hpp"

namespace elastic::runtime {

namespace {

constexpr const char* kRuntimeFolder = "XDG_RUNTIME_DIR";
constexpr double kPerMicrosecond = 1000;

using timeline::OperationRecord;
using timeline::Outcome;

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOpen:
      return "open";
    case Outcome::kDone:
      return "done";
    case Outcome::kError:
      return "error";
    case Outcome::kInterrupted:
      return "interrupted";
  }
  return "";
}

nlohmann::json json_of(const OperationRecord& record, const timeline::TickScale& scale,
                       const timeline::Texts& texts) {
  const auto microseconds = [&](std::int64_t ticks) -> nlohmann::json {
    if (ticks == 0) return nullptr;
    return static_cast<double>(scale.nanoseconds(ticks)) / kPerMicrosecond;
  };
  nlohmann::json operation = {{"call", transport::describe_kind(record.kind)},
                              {"position", record.position},
                              {"generation", record.generation},
                              {"bytes", record.bytes},
                              {"tensors", record.tensors},
                              {"began_us", microseconds(record.began)},
                              {"ended_us", microseconds(record.ended)},
                              {"state", name_of(record.outcome)}};
  if (record.is_small) operation["small"] = record.last - record.position + 1;
  if (record.text != timeline::Texts::kNone) operation["first"] = texts.text(record.text);
  return operation;
}

/// Writes a file that is not there yet: no FIFO of that name makes the worker wait for its reader.
/// \returns whether it could; otherwise `errno` says why.
bool write_fresh(const std::string& path, std::string_view text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  while (file && !text.empty()) {
    const ssize_t wrote = ::write(file.get(), text.data(), text.size());
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote > 0) text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return static_cast<bool>(file);
}

std::string one_line(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Status make_flight_folder(const std::string& folder) {
  const bool there = ::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST;
  if (there && ::access((folder + "/.").c_str(), W_OK | X_OK) == 0) return {};
  return Status(Code::kInvalidArgument,
                "cannot write the latest operations to the folder " + folder + ": " +
                    std::strerror(errno) +
                    "; name a folder that you may write to (ELASTIC_FLIGHT_RECORDER)");
}

FlightLog::FlightLog(const std::string& folder, const Identity& identity,
                     const MembershipStatus& status, const Lanes& lanes, const CallsUnderWay& calls,
                     const timeline::Texts& texts)
    : given_folder_(folder),
      runtime_folder_(read_environment()[kRuntimeFolder]),
      identity_(identity),
      status_(status),
      lanes_(lanes),
      calls_(calls),
      texts_(texts) {}

void FlightLog::finish() {
  if (thread_.joinable()) thread_.join();
}

Result<std::string> FlightLog::folder() const {
  if (!given_folder_.empty()) {
    if (Status made = make_flight_folder(given_folder_); !made.ok()) return made;
    return given_folder_;
  }
  const Result<std::string> own = launcher::private_folder({{kRuntimeFolder, runtime_folder_}});
  if (!own.ok()) return own.status();
  std::string job = identity_.job;
  std::ranges::replace(job, '/', '_');
  const std::string folder = own.value() + "/flight-" + job;
  if (Status made = launcher::make_private_folder(folder); !made.ok()) return made;
  return folder;
}

/// The first of the named tensors under way, which may not have come to an operation yet.
std::string FlightLog::first_tensor() const {
  const auto calls = calls_.present_calls(*lanes_[0], *lanes_[1], nullptr);
  return calls ? coordinator::row_name(calls->back().tensor) : std::string();
}

/// One operation a line, so that grep finds them.
std::string FlightLog::text(const std::string& reason) {
  const auto view = status_.view();
  const MutexLock lock(mutex_);
  scale_.anchor();
  const auto now = std::chrono::nanoseconds(Clock::now().time_since_epoch());
  const nlohmann::json head = {
      {"worker", fmt::format("{:016x}", identity_.id)},
      {"job", identity_.job},
      {"host", host_name()},
      {"pid", ::getpid()},
      {"rank", view ? view->members->rank : -1},
      {"members", view ? view->members->size() : 0},
      {"generation", view ? view->members->generation : 0},
      {"first_tensor_under_way", first_tensor()},
      {"reason", reason},
      {"written_ms", milliseconds_since_1970()},
      {"written_us", static_cast<double>(now.count()) / kPerMicrosecond},
  };
  std::string text = one_line(head);
  text.back() = ',';
  text += "\n\"lanes\": [";
  const char* between_lanes = "\n";
  bool any = false;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    const std::uint64_t position = lanes_[lane]->position();
    text += fmt::format("{}{{\"lane\": {}, \"position\": {}, \"operations\": [",
                        std::exchange(between_lanes, ",\n"), lane, position);
    const char* between = "\n";
    for (const OperationRecord& record : lanes_[lane]->trace().latest(position)) {
      text += std::exchange(between, ",\n") + one_line(json_of(record, scale_, texts_));
      any = true;
    }
    text += "]}";
  }
  return any || !first_tensor().empty() ? text + "]}\n" : std::string();
}

/// Not durable: the disk is not waited for.
Status FlightLog::place(const std::string& text, std::string& path) const {
  const Result<std::string> where = folder();
  if (!where.ok()) return where.status();
  path = where.value() + fmt::format("/flight.{:016x}.json", identity_.id);
  const std::string fresh = path + ".new";
  (void)::unlink(fresh.c_str());  // of a write that did not come to its end
  if (!write_fresh(fresh, text) || std::rename(fresh.c_str(), path.c_str()) != 0) {
    return Status(Code::kUnavailable, path + ": " + std::strerror(errno));
  }
  return {};
}

void FlightLog::write(const std::string& reason) {
  const std::string operations = text(reason);
  if (operations.empty()) return;
  std::string path;
  const Status placed = place(operations, path);
  if (placed.ok()) {
    log::warn("wrote the latest operations to {}", path);
  } else {
    log::warn("cannot write the latest operations: {}", placed.message());
  }
}

void FlightLog::write_later(const std::string& reason) {
  if (writing_.exchange(true)) return;
  if (thread_.joinable()) thread_.join();
  thread_ = std::thread([this, reason] {
    name_this_thread("elastic-flight");
    write(reason);
    writing_.store(false);
  });
}

}  // namespace elastic::runtime
