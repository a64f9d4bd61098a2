#include "benchmarks/join/join_log.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>
#include <unistd.h>
#include <utility>

#include "benchmarks/report/statistics.hpp"

namespace elastic::bench {

namespace {

constexpr const char* kPrefix = "join.";

Result<JoinRecord> read_join(const std::filesystem::path& file) {
  std::ifstream input(file);
  JoinRecord record;
  input >> record.joiner >> record.entry.start_ns >> record.entry.end_ns >> record.gap_ns;
  const bool begun = !input.fail();
  for (JoinRecord::Span span; input >> span.start_ns >> span.end_ns;) {
    record.broadcasts.push_back(span);
  }
  if (!begun || !input.eof()) return Status(Code::kInternal, file.string() + " is damaged");
  return record;
}

/// The time of each broadcast, from the first worker's call to the last worker's return.
std::vector<double> broadcasts_ms(const std::vector<JoinRecord>& records) {
  std::vector<double> times;
  for (std::size_t i = 0; i < records.front().broadcasts.size(); ++i) {
    JoinRecord::Span whole = records.front().broadcasts[i];
    for (const JoinRecord& record : records) {
      whole.start_ns = std::min(whole.start_ns, record.broadcasts[i].start_ns);
      whole.end_ns = std::max(whole.end_ns, record.broadcasts[i].end_ns);
    }
    times.push_back(to_ms(whole.end_ns - whole.start_ns));
  }
  return times;
}

}  // namespace

std::filesystem::path own_join_file(const std::filesystem::path& folder) {
  return folder / (kPrefix + std::to_string(::getpid()));
}

Status write_join(const std::filesystem::path& file, const JoinRecord& record) {
  std::ofstream output(file);
  output << record.joiner << ' ' << record.entry.start_ns << ' ' << record.entry.end_ns << ' '
         << record.gap_ns << '\n';
  for (const JoinRecord::Span& span : record.broadcasts) {
    output << span.start_ns << ' ' << span.end_ns << '\n';
  }
  output.flush();
  if (!output) return Status(Code::kUnavailable, file.string() + " cannot be written");
  return {};
}

Result<std::vector<JoinRecord>> read_joins(const std::filesystem::path& folder) {
  std::vector<JoinRecord> records;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    auto record = read_join(entry.path());
    if (!record.ok()) return record.status();
    records.push_back(std::move(record).value());
  }
  return records;
}

Result<JoinTime> join_time(const std::vector<JoinRecord>& records, int workers) {
  const auto joiners = std::count_if(records.begin(), records.end(),
                                     [](const JoinRecord& record) { return record.joiner; });
  if (records.size() != static_cast<std::size_t>(workers) || joiners != 1) {
    return Status(Code::kInternal, std::to_string(records.size()) + " workers came to their end, " +
                                       std::to_string(joiners) + " of them joiners; expected " +
                                       std::to_string(workers) + " and 1");
  }
  JoinTime time;
  for (const JoinRecord& record : records) {
    if (record.joiner) {
      time.join_ms = to_ms(record.entry.end_ns - record.entry.start_ns);
    } else {
      time.gap_ms = std::max(time.gap_ms, to_ms(record.gap_ns));
    }
    if (record.broadcasts.size() != records.front().broadcasts.size()) {
      return Status(Code::kInternal, "the workers made different numbers of broadcasts");
    }
  }
  time.broadcast_ms = summarize(broadcasts_ms(records)).median;
  return time;
}

}  // namespace elastic::bench
