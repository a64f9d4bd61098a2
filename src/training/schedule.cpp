#include "elastic/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "elastic/error.hpp"
#include "training/arguments.hpp"
#include "training/bytes.hpp"
#include "training/portable_math.hpp"

namespace elastic {

using training::not_negative;
using training::positive;
using training::require;

Schedule::Schedule(Kind kind, double base) : kind_(kind), base_(base) {}

Schedule Schedule::constant(double base) {
  const Schedule made(Kind::kConstant, base);
  made.check();
  return made;
}

Schedule Schedule::step(double base, std::vector<double> milestones, double factor) {
  Schedule made(Kind::kStep, base);
  made.milestones_ = std::move(milestones);
  made.factor_ = factor;
  made.check();
  return made;
}

Schedule Schedule::cosine(double base, double samples, double last) {
  Schedule made(Kind::kCosine, base);
  made.end_at(samples, last);
  return made;
}

Schedule Schedule::polynomial(double base, double samples, double power, double last) {
  Schedule made(Kind::kPolynomial, base);
  made.power_ = power;
  made.end_at(samples, last);
  return made;
}

void Schedule::end_at(double samples, double last) {
  samples_ = samples;
  last_ = last;
  check();
}

Schedule Schedule::with_warm_up(double samples, double first) const {
  require(positive(samples), "Schedule", "the warm-up's length", samples,
          "a positive number of samples, or leave the warm-up out");
  Schedule made = *this;
  made.warm_up_samples_ = samples;
  made.warm_up_first_ = first;
  made.check();
  return made;
}

double Schedule::rate(double samples) const {
  require(not_negative(samples), "Schedule", "the number of samples seen", samples,
          "a finite number, at least 0");
  if (samples >= warm_up_samples_) return without_warm_up(samples);
  const double target = without_warm_up(warm_up_samples_);
  return warm_up_first_ + (target - warm_up_first_) * (samples / warm_up_samples_);
}

double Schedule::without_warm_up(double samples) const {
  const double part = std::min(samples / samples_, 1.0);
  double rate = base_;
  switch (kind_) {
    case Kind::kConstant:
      return rate;
    case Kind::kStep:
      for (const double milestone : milestones_) rate *= samples >= milestone ? factor_ : 1;
      return rate;
    case Kind::kCosine:
      return last_ + (base_ - last_) * training::half_cosine(part);
    case Kind::kPolynomial:
      return last_ + (base_ - last_) * training::power(1 - part, power_);
  }
  return rate;
}

void Schedule::check() const {
  require(positive(base_), "Schedule", "the base rate", base_, "a finite number above 0");
  require(positive(factor_) && factor_ <= 1, "Schedule", "the factor of a step", factor_,
          "a number above 0 and at most 1");
  double before = 0;
  for (const double milestone : milestones_) {
    require(std::isfinite(milestone) && milestone > before, "Schedule", "a milestone", milestone,
            "numbers of samples above 0, each greater than the one before");
    before = milestone;
  }
  require(positive(samples_), "Schedule", "its length", samples_, "a positive number of samples");
  require(not_negative(last_) && last_ <= base_, "Schedule", "the last rate", last_,
          "a number from 0 to the base rate");
  require(positive(power_), "Schedule", "the power", power_, "a finite number above 0");
  require(not_negative(warm_up_samples_), "Schedule", "the warm-up's length", warm_up_samples_,
          "a positive number of samples");
  require(not_negative(warm_up_first_) && warm_up_first_ <= without_warm_up(warm_up_samples_),
          "Schedule", "the first rate of the warm-up", warm_up_first_,
          "a number from 0 to the rate at the warm-up's end");
}

std::vector<std::byte> Schedule::save() const {
  std::vector<std::byte> bytes;
  training::put(bytes, static_cast<std::uint8_t>(kind_));
  for (const double value :
       {base_, factor_, samples_, last_, power_, warm_up_samples_, warm_up_first_}) {
    training::put(bytes, value);
  }
  for (const double milestone : milestones_) training::put(bytes, milestone);
  return bytes;
}

void Schedule::load(std::span<const std::byte> bytes) {
  training::ByteReader reader(bytes);
  std::uint8_t kind = 0;
  bool whole = reader.take(kind) && kind <= static_cast<std::uint8_t>(Kind::kPolynomial);
  Schedule loaded(static_cast<Kind>(kind), 0);
  for (double* value : {&loaded.base_, &loaded.factor_, &loaded.samples_, &loaded.last_,
                        &loaded.power_, &loaded.warm_up_samples_, &loaded.warm_up_first_}) {
    whole = whole && reader.take(*value);
  }
  while (whole && reader.left() > 0) {
    loaded.milestones_.push_back(0);
    whole = reader.take(loaded.milestones_.back());
  }
  if (!whole) {
    throw Error(ErrorCode::kInvalidArgument,
                "Schedule: " + std::to_string(bytes.size()) + " bytes are not a saved schedule");
  }
  loaded.check();
  *this = std::move(loaded);
}

}  // namespace elastic
