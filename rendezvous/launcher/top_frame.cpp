#include "rendezvous/launcher/top_frame.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "rendezvous/monitoring/states.hpp"

namespace elastic::launcher {

namespace {

using monitoring::progress_of;
using rendezvous::JobHistory;
using rendezvous::StatusReply;
using rendezvous::WorkerFigures;

constexpr const char* kUnknown = "-";
/// Fits into 100 columns.
constexpr const char* kRankLine =
    "{:>4}  {:<14.14}  {:<10.10}  {:<12}  {:>8}  {:>9}  {:>10}  {:>7}  {:>8}";
constexpr std::size_t kLeastEvents = 5;

/// The work of a worker between two statuses.
struct Growth {
  double bytes_per_second = 0;
  double steps = 0;
  double step_time = 0;      ///< in seconds, of all these steps
  double communication = 0;  ///< in seconds, of `step_time`
};

std::optional<WorkerFigures> figures_of(const StatusReply& status, const std::string& incarnation) {
  const auto& members = status.view.members;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank].incarnation == incarnation) return progress_of(status, rank).figures;
  }
  return std::nullopt;
}

/// Nothing where no time has passed, or the figures are not known.
std::optional<Growth> growth(const StatusReply& before, const StatusReply& now, std::size_t rank) {
  const auto figures = progress_of(now, rank).figures;
  if (!figures) return std::nullopt;
  const WorkerFigures then =
      figures_of(before, now.view.members[rank].incarnation).value_or(WorkerFigures());
  const double time = figures->at_s - then.at_s;
  if (time <= 0) return std::nullopt;
  const auto grown = [&](auto field) {
    return static_cast<double>((*figures).*field - then.*field);
  };
  Growth its;
  its.bytes_per_second =
      (grown(&WorkerFigures::shm_bytes) + grown(&WorkerFigures::tcp_bytes)) / time;
  its.steps = grown(&WorkerFigures::steps);
  its.communication = grown(&WorkerFigures::communication_s);
  its.step_time = grown(&WorkerFigures::data_s) + grown(&WorkerFigures::compute_s) +
                  its.communication + grown(&WorkerFigures::view_change_s);
  return its;
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return fmt::format("{:.{}f} {}", bytes, unit > 0 && bytes < 10 ? 1 : 0, kUnits.at(unit));
}

std::string time_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1000) : fmt::format("{:.2f} s", seconds);
}

std::string share_text(double part, double whole) {
  return fmt::format("{:.0f} %", 100 * part / whole);
}

using Growths = std::vector<std::optional<Growth>>;

std::string head_lines(const StatusReply& now, const Growths& grown) {
  double traffic = 0;
  for (const auto& its : grown) traffic += its ? its->bytes_per_second : 0;
  std::string lines =
      fmt::format("job {}: {}, step {}, {:.1f} steps per second, {} per second\n", now.job,
                  now.phase, now.commits, now.steps_per_second, bytes_text(traffic));
  lines += fmt::format("generation {}, {} members (min {}, max {}), {} joiners\n",
                       now.view.generation, now.view.members.size(), now.min_np,
                       now.max_np == 0 ? "none" : std::to_string(now.max_np), now.joiners.size());
  lines += monitoring::quarantine_lines(now);
  if (!now.history || now.history->views.empty()) return lines;
  std::string views;
  for (const JobHistory::Views& its : now.history->views) {
    if (its.count == 0) continue;
    views += fmt::format("{}{} {}", views.empty() ? "views: " : ", ", its.count, its.cause);
    const auto known =
        std::accumulate(its.recoveries.begin(), its.recoveries.end(), std::uint64_t{0});
    if (known == 0) continue;
    views += fmt::format(" (recovery {})", time_text(its.recovery_s / static_cast<double>(known)));
  }
  return lines + views + "\n";
}

/// A rank waits for as much longer in collectives than the rank that is there least: what all have
/// is the communication itself.
double least_communication(const Growths& grown) {
  double least = std::numeric_limits<double>::max();
  for (const auto& its : grown) {
    if (its && its->step_time > 0) least = std::min(least, its->communication / its->step_time);
  }
  return least;
}

std::string rank_line(const StatusReply& now, std::size_t rank, const std::optional<Growth>& its,
                      double least) {
  const auto& member = now.view.members[rank];
  const StatusReply::Progress progress = progress_of(now, rank);
  const bool stepped = its && its->steps > 0 && its->step_time > 0;
  const double share = stepped ? its->communication / its->step_time : 0;
  return fmt::format(
      fmt::runtime(kRankLine), rank, monitoring::host_of(now, member),
      member.label.empty() ? kUnknown : member.label, monitoring::state_of(now, progress),
      progress.commits, stepped ? time_text(its->step_time / its->steps) : kUnknown,
      stepped ? share_text(share, 1) : kUnknown, stepped ? share_text(share - least, 1) : kUnknown,
      its ? bytes_text(its->bytes_per_second) : kUnknown);
}

std::vector<std::string> rank_lines(const StatusReply& now, const Growths& grown) {
  const double least = least_communication(grown);
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < grown.size(); ++rank) {
    lines.push_back(rank_line(now, rank, grown[rank], least));
  }
  for (const auto& joiner : now.joiners) {
    lines.push_back(fmt::format(
        fmt::runtime(kRankLine), kUnknown, kUnknown, joiner.label.empty() ? kUnknown : joiner.label,
        monitoring::state_of(joiner), kUnknown, kUnknown, kUnknown, kUnknown, kUnknown));
  }
  return lines;
}

std::vector<std::string> event_lines(const StatusReply& now) {
  std::vector<std::string> lines;
  if (!now.history) return lines;
  for (const JobHistory::Event& event : now.history->events) {
    const auto at = static_cast<std::time_t>(event.at_ms / 1000);
    lines.push_back(
        fmt::format("{:%H:%M:%S}  {:<17}  {}", fmt::gmtime(at), event.event, event.text));
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

/// The first `most` of the lines; the last of these tells how many are left out.
std::string first_lines(std::vector<std::string> lines, std::size_t most) {
  if (lines.size() > most) {
    const std::size_t left_out = lines.size() - most + 1;
    lines.resize(most == 0 ? 0 : most - 1);
    if (most > 0) lines.push_back(fmt::format("... and {} more", left_out));
  }
  return lines.empty() ? "" : fmt::format("{}\n", fmt::join(lines, "\n"));
}

/// Each line has at most so many bytes, and no part of a character at its end.
std::string cut(const std::string& lines, std::size_t columns) {
  if (columns == 0) return lines;
  std::string shorter;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    std::size_t bytes = std::min(end - begin, columns);
    const auto continues = [&] {
      return (static_cast<unsigned char>(lines[begin + bytes]) & 0xC0U) == 0x80U;
    };
    while (bytes > 0 && continues()) --bytes;
    shorter += lines.substr(begin, bytes) + "\n";
    begin = end + 1;
  }
  return shorter;
}

}  // namespace

std::string top_frame(const StatusReply& before, const StatusReply& now, const FrameSize& size) {
  Growths grown;
  for (std::size_t rank = 0; rank < now.view.members.size(); ++rank) {
    grown.push_back(growth(before, now, rank));
  }
  const std::string head = head_lines(now, grown) + "\n" +
                           fmt::format(fmt::runtime(kRankLine), "rank", "host", "slot", "state",
                                       "step", "step time", "collective", "waiting", "bytes/s") +
                           "\n";
  const std::vector<std::string> ranks = rank_lines(now, grown);
  const std::vector<std::string> events = event_lines(now);
  constexpr std::size_t kTitles = 2;  // of the events
  std::size_t most_ranks = ranks.size();
  std::size_t most_events = events.size();
  if (size.rows > 0) {
    const auto lines =
        static_cast<std::size_t>(std::count(head.begin(), head.end(), '\n')) + kTitles;
    const std::size_t free = size.rows > lines ? size.rows - lines : 0;
    most_events = std::min({events.size(), kLeastEvents, free});
    most_ranks = std::min(ranks.size(), free - most_events);
    most_events = std::min(events.size(), free - most_ranks);
  }
  const std::string frame = head + first_lines(ranks, most_ranks) +
                            (events.empty() ? "" : "\nevents (UTC), the latest first\n") +
                            first_lines(events, most_events);
  return cut(printable(frame), size.columns);
}

}  // namespace elastic::launcher
