#include "elastic/learning_rate_ramp.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/training_figures.hpp"
#include "elastic/error.hpp"
#include "training/arguments.hpp"
#include "training/bytes.hpp"
#include "training/ramp_options.hpp"

namespace elastic {
namespace {

using training::positive;
using training::require;

constexpr double kDefaultStepsPerGrowth = 8;
/// In units of the 1 / (1 - mu) gradients that the momentum sums.
constexpr double kMomentumLifetimes = 3;
/// Quotients may exceed an integer by rounding.
constexpr double kRounding = 1 - 1e-9;

/// Rounded up. The bound keeps the conversion defined for absurd growths; it is over a billion.
std::uint64_t whole_steps(double steps) {
  return static_cast<std::uint64_t>(std::clamp(std::ceil(steps * kRounding), 1.0, 0x1p30));
}

[[noreturn]] void invalid_ramp(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "LearningRateRamp: " + message);
}

bool plausible(const LearningRateRamp::Record& record) {
  return positive(record.batch_reference) && positive(record.gamma) &&
         positive(record.gamma_before) && positive(record.gamma_start) &&
         positive(record.gamma_target) && record.taken <= record.length &&
         training::not_negative(record.slope) && record.least_steps > 0 &&
         (record.taken == record.length || record.slope > 0);
}

}  // namespace

void training::require_valid(const LearningRateRamp::Options& options, std::string_view where) {
  require(positive(options.batch_reference), where, "batch_reference", options.batch_reference,
          "the positive number of samples per step that the base rate was chosen for");
  require(options.ramp_steps != 0U, where, "ramp_steps", 0, "at least 1, or leave it out");
  require(training::not_negative(options.momentum) && options.momentum < 1, where, "momentum",
          options.momentum, "the optimizer's, from 0 to below 1");
}

LearningRateRamp::LearningRateRamp(const Options& options) {
  training::require_valid(options, "LearningRateRamp");
  record_.least_steps = whole_steps(kMomentumLifetimes / (1 - options.momentum));
  record_.batch_reference = options.batch_reference;
  record_.ramp_steps = options.ramp_steps.value_or(0);
}

void LearningRateRamp::begin(double target) {
  const bool goes_on = record_.taken < record_.length;
  record_.gamma_start = record_.gamma;
  record_.gamma_target = target;
  record_.taken = 0;
  record_.length = 0;
  if (target <= record_.gamma) {
    record_.slope = 0;
    return;
  }
  const double growth = target - record_.gamma;
  if (goes_on) {
    record_.length = whole_steps(growth / record_.slope);
    return;
  }
  record_.length = record_.ramp_steps;
  if (record_.length == 0) {
    record_.length = std::max(whole_steps(kDefaultStepsPerGrowth * (target / record_.gamma)),
                              record_.least_steps);
  }
  record_.slope = growth / static_cast<double>(record_.length);
}

double LearningRateRamp::step(double batch_now) {
  const double target = batch_now / record_.batch_reference;
  require(positive(batch_now) && positive(target), "LearningRateRamp", "the batch of step()",
          batch_now, "the positive number of samples of the step over all workers");
  if (target != record_.gamma_target) begin(target);
  record_.gamma_before = record_.gamma;
  if (record_.taken < record_.length) ++record_.taken;
  if (record_.taken >= record_.length) {
    record_.gamma = record_.gamma_target;  // exactly, where the formula could miss by a rounding
  } else {
    const double risen = record_.slope * static_cast<double>(record_.taken);
    record_.gamma = std::min(record_.gamma_start + risen, record_.gamma_target);
  }
  training_figures().ramp_gamma.store(record_.gamma, std::memory_order_relaxed);
  training_figures().ramp_target.store(record_.gamma_target, std::memory_order_relaxed);
  return record_.gamma;
}

void LearningRateRamp::restore(const Record& record) {
  if (!plausible(record)) invalid_ramp("the record to restore is not one that a ramp can have");
  record_ = record;
}

std::vector<std::byte> LearningRateRamp::save() const {
  std::vector<std::byte> bytes;
  for (const double value : {record_.batch_reference, record_.gamma, record_.gamma_before,
                             record_.gamma_start, record_.gamma_target}) {
    training::put(bytes, value);
  }
  for (const std::uint64_t value : {record_.taken, record_.length, record_.ramp_steps}) {
    training::put(bytes, value);
  }
  training::put(bytes, record_.slope);
  training::put(bytes, record_.least_steps);
  return bytes;
}

void LearningRateRamp::load(std::span<const std::byte> bytes) {
  Record record;
  training::ByteReader reader(bytes);
  bool whole = true;
  for (double* value : {&record.batch_reference, &record.gamma, &record.gamma_before,
                        &record.gamma_start, &record.gamma_target}) {
    whole = whole && reader.take(*value);
  }
  for (std::uint64_t* value : {&record.taken, &record.length, &record.ramp_steps}) {
    whole = whole && reader.take(*value);
  }
  if (reader.left() == 0 && record.length > 0) {  // as it was saved before there was a slope
    record.slope = (record.gamma_target - record.gamma_start) / static_cast<double>(record.length);
  } else if (reader.left() > 0) {
    whole = whole && reader.take(record.slope) && reader.take(record.least_steps);
  }
  if (!whole || reader.left() != 0) {
    invalid_ramp(std::to_string(bytes.size()) + " bytes are not a saved ramp");
  }
  restore(record);
}

}  // namespace elastic
