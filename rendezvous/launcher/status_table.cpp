#include "rendezvous/launcher/status_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/printable.hpp"

namespace elastic::launcher {

namespace {

using rendezvous::Member;
using rendezvous::StatusReply;

constexpr std::size_t kColumns = 8;
/// The table is to fit into 100 columns.
constexpr std::size_t kLongestHost = 28;
constexpr const char* kLegend =
    "synced: has the job's training state; member: takes part, but does not have the state yet\n";
using Row = std::array<std::string, kColumns>;

StatusReply::Progress progress_of(const StatusReply& status, std::size_t rank) {
  if (rank < status.progress.size()) return status.progress[rank];
  return {0, 0, status.view.members[rank].synced, true};
}

const char* state_of(const StatusReply& status, const StatusReply::Progress& member) {
  if (status.phase == "done" || status.phase == "failed") return "ended";
  if (!member.connected) return "disconnected";
  return member.synced ? "synced" : "member";
}

const char* state_of(const StatusReply::Waiting& joiner) {
  if (!joiner.ready) return "preparing";
  return joiner.waits_for.empty() ? "joining" : "waiting";
}

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

// A host is named by its name and, behind a slash, what tells it from others of that name.
std::string short_host(const std::string& host) {
  const std::string name = host.substr(0, host.find('/'));
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
    line += (line.empty() ? "hosts: " : ", ") + its.host + " ";
    if (!its.connected) {
      line += "not connected";
    } else if (its.slots == 0) {
      line += "drained, " + std::to_string(its.running) + " left";
    } else {
      line += std::to_string(its.running) + " of " + std::to_string(its.slots);
    }
  }
  return line + "\n";
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
                    or_dash(short_host(member.endpoints.host)), or_dash(member.label),
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

std::string status_json(const StatusReply& status) {
  nlohmann::json json = {{"job", status.job},
                         {"phase", status.phase},
                         {"generation", status.view.generation},
                         {"world_size", status.view.members.size()},
                         {"min_np", status.min_np},
                         {"max_np", status.max_np},
                         {"initial_np", nullptr},
                         {"view_changes", status.view_changes},
                         {"commits", status.commits},
                         {"steps_per_second", status.steps_per_second},
                         {"slowest_rank", nullptr},
                         {"last_change", status.view.cause},
                         {"members", nlohmann::json::array()},
                         {"joiners", nlohmann::json::array()}};
  if (status.initial_np) json["initial_np"] = *status.initial_np;
  if (status.slowest >= 0) json["slowest_rank"] = status.slowest;
  for (std::size_t rank = 0; rank < status.view.members.size(); ++rank) {
    const Member& member = status.view.members[rank];
    const StatusReply::Progress progress = progress_of(status, rank);
    nlohmann::json row = {{"rank", rank},
                          {"pid", member.pid},
                          {"host", member.endpoints.host},
                          {"slot", member.label},
                          {"state", state_of(status, progress)},
                          {"incarnation", member.incarnation},
                          {"commits", progress.commits},
                          {"operations", progress.operations}};
    if (rank < status.heartbeat_age_ms.size()) {
      row["heartbeat_age_ms"] = status.heartbeat_age_ms[rank];
    }
    json["members"].push_back(std::move(row));
  }
  for (const auto& joiner : status.joiners) {
    json["joiners"].push_back({{"pid", joiner.pid},
                               {"slot", joiner.label},
                               {"state", state_of(joiner)},
                               {"waits_for", joiner.waits_for},
                               {"incarnation", joiner.incarnation}});
  }
  json["launchers"] = nlohmann::json::array();
  for (const auto& its : status.launchers.value_or(std::vector<StatusReply::Launcher>())) {
    json["launchers"].push_back({{"number", its.number},
                                 {"host", its.host},
                                 {"slots", its.slots},
                                 {"running", its.running},
                                 {"connected", its.connected}});
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace elastic::launcher
