#include "coordinator/bucket_tuning.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace elastic::coordinator {
namespace {

constexpr std::uint64_t kFactor = 4;
/// After so many steps of another size in a row the program has changed.
constexpr std::size_t kOtherSteps = 8;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
  if (bytes >= kMebibyte && bytes % kMebibyte == 0) return fmt::format("{} MiB", bytes / kMebibyte);
  return fmt::format("{} KiB", bytes >> 10);
}

}  // namespace

BucketTuning::BucketTuning(std::uint64_t bucket_bytes)
    : in_use_(std::clamp(bucket_bytes, kLeast, kMost)) {
  found_.best = in_use_;
}

void BucketTuning::begin_view(int ranks) {
  if (ranks_ > 0) by_ranks_[ranks_] = found_;
  ranks_ = ranks;
  const auto known = by_ranks_.find(ranks);
  if (known != by_ranks_.end()) {
    found_ = known->second;
  } else {
    found_ = Found{.best = found_.best};
  }
  begin_step(std::nullopt);
  // Another leader may have made the buckets that there are.
  in_use_ = found_.best;
  is_new_ = true;
  candidate_.reset();
  if (!found_.over) begin_comparison();
}

std::optional<std::uint64_t> BucketTuning::on_submit(const std::string& name, std::uint64_t bytes,
                                                     bool idle, TimePoint now) {
  if (candidate_) {
    names_came_again_ = !names_.insert(name).second || names_came_again_;
    if (names_came_again_ && idle) {
      if (since_) end_step(std::chrono::duration<double>(now - *since_).count());
      begin_step(now);
      names_.insert(name);
    }
    step_bytes_ += bytes;
  }
  if (!idle || !std::exchange(is_new_, false)) return std::nullopt;
  return in_use_;
}

void BucketTuning::begin_step(std::optional<TimePoint> since) {
  since_ = since;
  names_.clear();
  names_came_again_ = false;
  step_bytes_ = 0;
}

std::vector<std::string> BucketTuning::take_log() {
  return std::exchange(log_, {});
}

void BucketTuning::begin_comparison() {
  candidate_ = next_candidate();
  if (!candidate_) {
    turn_around();
    candidate_ = found_.over ? std::nullopt : next_candidate();
    if (!candidate_) found_.over = true;
  }
  turns_.assign(1, {});
  candidates_turn_ = false;
  steps_ = 0;
  other_steps_ = 0;
}

void BucketTuning::turn_around() {
  found_.over = found_.turned;
  found_.turned = true;
  found_.direction = -found_.direction;
}

/// None: there are no smaller ones, or larger ones would hold no more than a whole step.
std::optional<std::uint64_t> BucketTuning::next_candidate() const {
  if (found_.direction < 0) {
    if (found_.best / kFactor < kLeast) return std::nullopt;
    return found_.best / kFactor;
  }
  const bool holds_a_step = bytes_ > 0 && found_.best >= bytes_;
  if (holds_a_step || found_.best > kMost / kFactor) return std::nullopt;
  return found_.best * kFactor;
}

void BucketTuning::end_step(double seconds) {
  if (step_bytes_ != bytes_) {
    const bool changed = bytes_ == 0 || ++other_steps_ >= kOtherSteps;
    if (!changed) return;
    bytes_ = step_bytes_;
    turns_.assign(1, {});
    candidates_turn_ = false;
    other_steps_ = 0;
    steps_ = 0;
    is_new_ = in_use_ != found_.best;
    in_use_ = found_.best;
    return;
  }
  other_steps_ = 0;
  if (steps_++ >= kUnusedSteps) {
    (candidates_turn_ ? turns_.back().candidate : turns_.back().best).push_back(seconds);
  }
  if (steps_ == kUnusedSteps + kStepsOfATurn) end_turn();
}

void BucketTuning::end_turn() {
  steps_ = 0;
  candidates_turn_ = !candidates_turn_;
  if (!candidates_turn_) {
    if (turns_.size() == kTurns) return judge();
    turns_.emplace_back();
  }
  in_use_ = candidates_turn_ ? *candidate_ : found_.best;
  is_new_ = true;
}

void BucketTuning::judge() {
  std::vector<double> best;
  std::vector<double> candidate;
  bool faster = true;
  for (const Turn& turn : turns_) {
    faster = faster && median(turn.candidate) < median(turn.best);
    best.insert(best.end(), turn.best.begin(), turn.best.end());
    candidate.insert(candidate.end(), turn.candidate.begin(), turn.candidate.end());
  }
  const bool wins = faster && median(candidate) < (1 - kGain) * median(best);
  const char* const verdict = wins     ? "taken"
                              : faster ? "not taken, as it gains too little"
                                       : "not taken, as it is not faster in each turn";
  log_.push_back(
      fmt::format("autotune: with buckets of {} a step of {} ranks takes {:.3f} ms, with {} it "
                  "takes {:.3f} ms: {}",
                  size_text(*candidate_), ranks_, 1e3 * median(candidate), size_text(found_.best),
                  1e3 * median(best), verdict));
  if (wins) {
    found_.best = *candidate_;
    found_.turned = true;  // the size before it has lost in the other direction
  } else {
    turn_around();
  }
  candidate_.reset();
  in_use_ = found_.best;
  is_new_ = true;
  if (!found_.over) begin_comparison();
  if (found_.over) {
    log_.push_back(
        fmt::format("autotune: buckets of {} stay for {} ranks", size_text(found_.best), ranks_));
  }
}

}  // namespace elastic::coordinator
