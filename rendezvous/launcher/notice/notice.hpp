#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/status.hpp"

namespace elastic::notice {

/// The time of day, in which clouds say when a machine ends.
using WallTime = std::chrono::system_clock::time_point;

/// The word of a cloud, a file or a command, that this machine is to end.
struct Notice {
  std::string text;     ///< for people: "EC2 will terminate this machine"
  Milliseconds left{};  ///< until then; 0 if that is past
  Milliseconds late{};  ///< since then; 0 if it is still to come
};

/// Where notices come from.
struct NoticeSource {
  enum class Kind : std::uint8_t { kAws, kGcp, kAzure, kFile, kCommand };
  Kind kind = Kind::kFile;
  std::string address;  ///< of the cloud's metadata service, "HOST:PORT"; the path, or the command
};

/// "aws", "gcp" or "azure", with "@HOST:PORT" for another metadata service, "file:PATH" or
/// "command:CMD". kInvalidArgument names the choices.
Result<NoticeSource> parse_notice_source(const std::string& text);

// The answers of sources. None: this machine stays. kProtocol: the answer is none of those that the
// service's manual has. `now` is the time of day.

/// EC2's spot/instance-action: {"action":"terminate","time":"2026-11-24T18:02:00Z"}.
Result<std::optional<Notice>> read_aws(std::string_view answer, WallTime now);
/// GCP's instance/preempted: TRUE or FALSE. A machine has 30 s.
Result<std::optional<Notice>> read_gcp(std::string_view answer);
/// Whether a machine in Azure can have this name: the answer may be a proxy's page.
bool is_azure_name(std::string_view name);
/// Azure's scheduledevents, of which those that name `machine` matter.
Result<std::optional<Notice>> read_azure(std::string_view answer, const std::string& machine,
                                         WallTime now);
/// The text of a file or a command: the seconds that are left, or nothing, which is two minutes.
Result<std::optional<Notice>> read_seconds(std::string_view answer, const std::string& source);

}  // namespace elastic::notice
