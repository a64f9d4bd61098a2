#include "timeline/trace_format.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/backend_names.hpp"
#include "base/wall_clock.hpp"
#include "collectives/transport/frame.hpp"
#include "timeline/json_text.hpp"

namespace elastic::timeline {

namespace {

constexpr int kLaneRow = 1;  // of lane 0; lane 1 has the next one
constexpr int kViewChangeRow = 3;
constexpr int kStepRow = 4;
constexpr int kFirstTensorRow = 10;

constexpr std::int64_t kPerMicrosecond = 1000;

/// Microseconds with three digits after the point: several times faster than from a double.
std::string microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / kPerMicrosecond, nanoseconds % kPerMicrosecond);
}

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOpen:
      return "open";
    case Outcome::kDone:
      return "done";
    case Outcome::kError:
      return "error";
    case Outcome::kInterrupted:
      return "interrupted by a view change";
  }
  return "";
}

std::string_view backend_of(const Event& event) {
  const std::size_t index = event.kind >> transport::Fingerprint::kKindBits;
  return index < kBackendNames.size() ? kBackendNames[index] : "";
}

}  // namespace

TraceFormat::TraceFormat(TraceFacts facts, const Texts& texts)
    : facts_(std::move(facts)), texts_(texts), process_(::getpid()) {}

std::string TraceFormat::beginning() {
  std::string text = "[\n";
  append_metadata("process_name", 0,
                  fmt::format(R"("name":"joiner on {}")", json_text(facts_.host)), text);
  append_row(kLaneRow, "unnamed calls", text);
  append_row(kLaneRow + 1, "named calls", text);
  append_row(kViewChangeRow, "view changes", text);
  append_row(kStepRow, "steps", text);
  append_metadata(
      "elastic_worker", 0,
      fmt::format(R"("worker":"{:016x}","job":"{}","host":"{}","label":"{}","os_pid":{},)"
                  R"("monotonic_ns":{},"realtime_ns":{})",
                  facts_.worker, json_text(facts_.job), json_text(facts_.host),
                  json_text(facts_.label), process_,
                  std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(),
                  nanoseconds_since_1970()),
      text);
  return text;
}

/// The last event, without a comma after it.
std::string TraceFormat::end() const {
  return fmt::format(R"({{"name":"elastic_end","ph":"M","pid":{},"tid":0,"args":{{}}}})"
                     "\n]\n",
                     process_);
}

void TraceFormat::append_metadata(std::string_view what, int row, const std::string& arguments,
                                  std::string& text) const {
  fmt::format_to(std::back_inserter(text),
                 R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{{}}}}},)"
                 "\n",
                 what, process_, row, arguments);
}

void TraceFormat::append_row(int row, std::string_view name, std::string& text) const {
  append_metadata("thread_name", row, fmt::format(R"("name":"{}")", json_text(name)), text);
  append_metadata("thread_sort_index", row, fmt::format(R"("sort_index":{})", row), text);
}

void TraceFormat::append(const Slice& slice, std::string& text) const {
  fmt::format_to(std::back_inserter(text),
                 R"({{"name":"{}","ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}},)"
                 "\n",
                 slice.name, process_, slice.row, microseconds(slice.began),
                 microseconds(std::max<std::int64_t>(0, slice.ended - slice.began)),
                 slice.arguments);
}

/// \returns `moment`, or the end of the slice before it on that row if that is later.
std::int64_t TraceFormat::after(int row, std::int64_t moment) {
  return std::max(moment, last_ended_[row]);
}

void TraceFormat::append(const Event& event, std::string& text) {
  switch (event.type) {
    case Event::Type::kOperation:
      return append_operation(event, text);
    case Event::Type::kTensor:
      return append_tensor(event, text);
    case Event::Type::kViewChange:
      return append_view_change(event, text);
    case Event::Type::kMember:
      return append_member(event, text);
    case Event::Type::kCommit:
      return append_commit(event, text);
  }
}

/// The algorithm that the view has for an allreduce of these bytes; empty for other calls and
/// backends.
std::string TraceFormat::algorithm_of(const Event& event) {
  constexpr unsigned kAllreduce = 1;
  if (event.kind != kAllreduce) return {};  // with a backend's number in it unless that is `native`
  if (event.eager) return "eager";
  if (tuning_.generation != event.generation && facts_.tuning) tuning_ = facts_.tuning();
  if (tuning_.generation != event.generation) return {};
  const auto choice = std::ranges::find_if(tuning_.allreduce, [&](const Tuning::Choice& each) {
    return event.bytes <= each.up_to_bytes || &each == &tuning_.allreduce.back();
  });
  return choice == tuning_.allreduce.end() ? std::string() : choice->algorithm;
}

void TraceFormat::append_operation(const Event& event, std::string& text) {
  const int row = kLaneRow + event.lane;
  const auto moment = [&](std::size_t which) {
    return event.times[which] == 0 ? 0 : after(row, scale_.nanoseconds(event.times[which]));
  };
  const std::int64_t began = moment(Event::kBegan);
  const std::int64_t ended = std::max(began, moment(Event::kEnded));
  std::string arguments = fmt::format(
      R"("bytes":{},"tensors":{},"lane":{},"position":{},"generation":{},"contributors":{},)"
      R"("backend":"{}","outcome":"{}")",
      event.bytes, event.tensors, event.lane, event.position, event.generation,
      event.outcome == Outcome::kDone ? event.members : 0, backend_of(event),
      outcome_name(event.outcome));
  if (const std::string algorithm = algorithm_of(event); !algorithm.empty()) {
    arguments += fmt::format(R"(,"algorithm":"{}")", algorithm);
  }
  if (event.on_device) arguments += R"(,"memory":"device")";
  if (event.text != Texts::kNone) {
    arguments += fmt::format(R"(,"first":"{}")", json_text(texts_.text(event.text)));
  }
  append({transport::describe_kind(event.kind), row, began, ended, std::move(arguments)}, text);
  const std::int64_t packed = moment(Event::kPacked);
  const std::int64_t performed = moment(Event::kPerformed);
  if (packed != 0) append({"pack", row, began, packed}, text);
  if (packed != 0 && performed != 0) {
    append({"collective", row, packed, performed}, text);
    append({"unpack", row, performed, ended}, text);
  }
  last_ended_[row] = ended;
}

int TraceFormat::row_of_tensor(const Event& event, std::string& text) {
  const int row = kFirstTensorRow + static_cast<int>(event.text);
  if (tensors_.insert(event.text).second) append_row(row, texts_.text(event.text), text);
  return row;
}

void TraceFormat::append_tensor(const Event& event, std::string& text) {
  if (event.text == Texts::kNone) return append_dropped(1, text);
  const int row = row_of_tensor(event, text);
  const std::int64_t submitted = after(row, event.times[Event::kSubmitted]);
  const std::int64_t ordered = std::max(submitted, event.times[Event::kOrdered]);
  const std::int64_t run = std::max(ordered, event.times[Event::kRun]);
  const std::int64_t complete = std::max(run, event.times[Event::kComplete]);
  const std::string arguments = fmt::format(
      R"("bytes":{},"bucket":{},"generation":{},"contributors":{},"outcome":"{}")", event.bytes,
      event.position, event.generation, event.members, outcome_name(event.outcome));
  append({"negotiate", row, submitted, ordered}, text);
  append({"queue", row, ordered, run}, text);
  append({transport::describe_kind(event.kind), row, run, complete, arguments}, text);
  last_ended_[row] = complete;
}

void TraceFormat::append_view_change(const Event& event, std::string& text) {
  const auto& times = event.times;
  const std::int64_t began = after(kViewChangeRow, times[Event::kNoticed]);
  append({"view change", kViewChangeRow, began, times[Event::kResumed],
          fmt::format(R"("generation":{},"cause":"{}")", event.generation,
                      json_text(texts_.text(event.text)))},
         text);
  static constexpr std::array kPhases = {"freeze", "decide", "link", "install", "replay"};
  for (std::size_t i = 0; i < kPhases.size(); ++i) {
    append({kPhases[i], kViewChangeRow, std::max(began, times[i]), std::max(began, times[i + 1])},
           text);
  }
  last_ended_[kViewChangeRow] = times[Event::kResumed];
}

/// A worker may change its rank. Viewers show the last name of a process.
void TraceFormat::append_member(const Event& event, std::string& text) const {
  append_metadata("process_name", 0,
                  fmt::format(R"("name":"rank {} on {}")", event.rank, json_text(facts_.host)),
                  text);
  append_metadata("process_sort_index", 0, fmt::format(R"("sort_index":{})", event.rank), text);
  fmt::format_to(std::back_inserter(text),
                 R"({{"name":"generation {}: rank {} of {}","ph":"i","s":"p","pid":{},"tid":{},)"
                 R"("ts":{},"args":{{"generation":{},"rank":{},"members":{}}}}},)"
                 "\n",
                 event.generation, event.rank, event.members, process_, kViewChangeRow,
                 microseconds(event.times[Event::kAt]), event.generation, event.rank,
                 event.members);
}

void TraceFormat::append_commit(const Event& event, std::string& text) {
  const std::int64_t now = event.times[Event::kAt];
  const std::int64_t began = std::exchange(last_commit_, now);
  if (began == 0) return;
  append({"step " + std::to_string(event.position), kStepRow, began, now,
          fmt::format(R"("step":{})", event.position)},
         text);
}

void TraceFormat::append_dropped(std::uint64_t events, std::string& text) {
  fmt::format_to(std::back_inserter(text),
                 R"({{"name":"{} events dropped","ph":"i","s":"p","pid":{},"tid":{},"ts":{},)"
                 R"("args":{{"dropped":{}}}}},)"
                 "\n",
                 events, process_, kViewChangeRow,
                 microseconds(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count()),
                 events);
}

}  // namespace elastic::timeline
