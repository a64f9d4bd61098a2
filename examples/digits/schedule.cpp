#include "examples/digits/schedule.hpp"

namespace digits {
namespace {

elastic::Schedule without_warm_up(ScheduleKind kind, double rate, double samples) {
  switch (kind) {
    case ScheduleKind::kConstant:
      break;
    case ScheduleKind::kStep:
      return elastic::Schedule::step(rate, {samples * 2 / 3});
    case ScheduleKind::kCosine:
      return elastic::Schedule::cosine(rate, samples);
    case ScheduleKind::kPolynomial:
      return elastic::Schedule::polynomial(rate, samples, 2);
  }
  return elastic::Schedule::constant(rate);
}

}  // namespace

elastic::Schedule schedule(ScheduleKind kind, double rate, double samples, double warm_up) {
  const elastic::Schedule made = without_warm_up(kind, rate, samples);
  return warm_up == 0 ? made : made.with_warm_up(warm_up, rate / 10);
}

}  // namespace digits
