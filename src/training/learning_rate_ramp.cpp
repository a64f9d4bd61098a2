#include "elastic/learning_rate_ramp.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "elastic/error.hpp"
#include "training/arguments.hpp"
#include "training/bytes.hpp"

namespace elastic {
namespace {

using training::positive;
using training::require;

constexpr double kDefaultStepsPerGrowth = 8;

[[noreturn]] void invalid_ramp(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "LearningRateRamp: " + message);
}

bool plausible(const LearningRateRamp::Record& record) {
  return positive(record.batch_reference) && positive(record.gamma) &&
         positive(record.gamma_before) && positive(record.gamma_start) &&
         positive(record.gamma_target) && record.taken <= record.length;
}

}  // namespace

LearningRateRamp::LearningRateRamp(const Options& options) {
  require(positive(options.batch_reference), "LearningRateRamp", "batch_reference",
          options.batch_reference,
          "the positive number of samples per step that the base rate was chosen for");
  require(options.ramp_steps != 0U, "LearningRateRamp", "ramp_steps", 0,
          "at least 1, or leave it out");
  record_.batch_reference = options.batch_reference;
  record_.ramp_steps = options.ramp_steps.value_or(0);
}

void LearningRateRamp::begin(double target) {
  record_.gamma_start = record_.gamma;
  record_.gamma_target = target;
  record_.taken = 0;
  record_.length = 0;
  if (target <= record_.gamma) return;
  record_.length = record_.ramp_steps;
  if (record_.length == 0) {
    // The bound keeps the conversion defined for absurd growths; it is over 100 million steps.
    const double steps = std::ceil(kDefaultStepsPerGrowth * (target / record_.gamma));
    record_.length = static_cast<std::uint64_t>(std::clamp(steps, 1.0, 0x1p30));
  }
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
    const double part = static_cast<double>(record_.taken) / static_cast<double>(record_.length);
    record_.gamma = record_.gamma_start + (record_.gamma_target - record_.gamma_start) * part;
  }
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
  if (!whole || reader.left() != 0) {
    invalid_ramp(std::to_string(bytes.size()) + " bytes are not a saved ramp");
  }
  restore(record);
}

}  // namespace elastic
