#include "rendezvous/launcher/status_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/printable.hpp"
#include "rendezvous/monitoring/states.hpp"

namespace elastic::launcher {

namespace {

using monitoring::progress_of;
using monitoring::state_of;
using rendezvous::Member;
using rendezvous::StatusReply;

constexpr std::size_t kColumns = 8;
/// The table is to fit into 100 columns.
constexpr std::size_t kLongestHost = 28;
constexpr const char* kLegend =
    "synced: has the job's training state; member: takes part, but does not have the state yet\n";
using Row = std::array<std::string, kColumns>;

std::string reasons_of(const std::vector<StatusReply::Waiting>& joiners) {
  std::string lines;
  for (const auto& joiner : joiners) {
    if (joiner.waits_for.empty()) continue;
    lines += "pid " + std::to_string(joiner.pid) + " waits for " + joiner.waits_for + "\n";
  }
  return lines;
}

std::string age_of(const StatusReply& status, std::size_t rank) {
  if (rank >= status.heartbeat_age_ms.size()) return "-";
  return std::to_string(std::lround(status.heartbeat_age_ms[rank])) + " ms";
}

std::string shortened(const std::string& name) {
  return name.size() <= kLongestHost ? name : name.substr(0, kLongestHost - 2) + "..";
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string progress_line(const StatusReply& status) {
  if (status.view.members.empty()) return {};
  std::array<char, 32> rate{};
  std::snprintf(rate.data(), rate.size(), "%.1f", status.steps_per_second);
  return "step " + std::to_string(status.commits) + ", " + rate.data() + " steps per second" +
         (status.slowest < 0 ? "" : ", slowest rank: " + std::to_string(status.slowest)) + "\n";
}

/// The members of a view, or the workers that are there before the first one.
std::string size_line(const StatusReply& status) {
  const std::string limits = " (min " + std::to_string(status.min_np) + ", max " +
                             (status.max_np == 0 ? "none" : std::to_string(status.max_np)) + ")";
  if (status.view.generation == 0 && status.phase == "forming" && status.initial_np) {
    return std::to_string(status.joiners.size()) + " of " + std::to_string(*status.initial_np) +
           " workers" + limits + "\n";
  }
  return "generation " + std::to_string(status.view.generation) + ", world size " +
         std::to_string(status.view.members.size()) + limits + ", " +
         std::to_string(status.view_changes) + " view changes, " +
         std::to_string(status.joiners.size()) + " joiners waiting\n";
}

std::string headline(const StatusReply& status) {
  const auto& view = status.view;
  return "job " + status.job + ": " + status.phase + ", " + size_line(status) +
         (view.cause.empty() ? "" : "last change: " + view.cause + "\n") + progress_line(status);
}

/// Where several launchers run the workers.
std::string hosts_line(const StatusReply& status) {
  if (!status.launchers || status.launchers->size() < 2) return "";
  std::string line;
  for (const auto& its : *status.launchers) {
    line += (line.empty() ? "hosts: " : ", ") + its.host + " (" + std::to_string(its.number) + ") ";
    if (its.slots == 0) {  // its launcher ends when its workers have left
      line += "drained";
      if (its.connected && its.running > 0) line += ", " + std::to_string(its.running) + " left";
    } else if (!its.connected) {
      line += "not connected";
    } else {
      line += std::to_string(its.running) + " of " + std::to_string(its.slots);
    }
  }
  return line + "\n" + monitoring::quarantine_lines(status);
}

std::string lines_of(const std::vector<Row>& rows) {
  std::array<std::size_t, kColumns> widths{};
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < kColumns; ++column) {
      line += row[column] + std::string(widths[column] + 2 - row[column].size(), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines += line + "\n";
  }
  return lines;
}

}  // namespace

std::string status_table(const StatusReply& status) {
  std::vector<Row> rows = {
      {"rank", "pid", "host", "slot", "state", "step", "operations", "heartbeat"}};
  for (std::size_t rank = 0; rank < status.view.members.size(); ++rank) {
    const Member& member = status.view.members[rank];
    const StatusReply::Progress progress = progress_of(status, rank);
    rows.push_back({std::to_string(rank), std::to_string(member.pid),
                    or_dash(shortened(monitoring::host_of(status, member))), or_dash(member.label),
                    state_of(status, progress), std::to_string(progress.commits),
                    std::to_string(progress.operations), age_of(status, rank)});
  }
  for (const auto& joiner : status.joiners) {
    rows.push_back({"-", std::to_string(joiner.pid), "-", or_dash(joiner.label), state_of(joiner),
                    "-", "-", "-"});
  }
  return printable(headline(status) + hosts_line(status) + (rows.size() > 1 ? lines_of(rows) : "") +
                   reasons_of(status.joiners) + (status.view.members.empty() ? "" : kLegend));
}

}  // namespace elastic::launcher
