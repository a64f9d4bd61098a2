#include "elastic/schedule.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <rapidcheck.h>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/error.hpp"

namespace elastic {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Schedule, ConstantStays) {
  const Schedule schedule = Schedule::constant(0.3);
  for (const double samples : {0.0, 1.0, 1e12}) EXPECT_EQ(schedule.rate(samples), 0.3);
}

TEST(Schedule, StepsFromEachMilestoneOn) {
  const Schedule schedule = Schedule::step(8, {100, 200, 300}, 0.5);
  EXPECT_EQ(schedule.rate(0), 8);
  EXPECT_EQ(schedule.rate(99.5), 8);
  EXPECT_EQ(schedule.rate(100), 4);
  EXPECT_EQ(schedule.rate(199), 4);
  EXPECT_EQ(schedule.rate(200), 2);
  EXPECT_EQ(schedule.rate(300), 1);
  EXPECT_EQ(schedule.rate(1e15), 1);
  EXPECT_EQ(Schedule::step(8, {}).rate(5), 8);
}

TEST(Schedule, CosineFallsFromBaseToLast) {
  const Schedule schedule = Schedule::cosine(1, 400, 0.2);
  EXPECT_EQ(schedule.rate(0), 1);
  EXPECT_DOUBLE_EQ(schedule.rate(100), 0.2 + 0.8 * (1 + std::numbers::sqrt2 / 2) / 2);
  EXPECT_DOUBLE_EQ(schedule.rate(200), 0.6);
  EXPECT_DOUBLE_EQ(schedule.rate(300), 0.2 + 0.8 * (1 - std::numbers::sqrt2 / 2) / 2);
  EXPECT_EQ(schedule.rate(400), 0.2);
  EXPECT_EQ(schedule.rate(1e15), 0.2);
}

TEST(Schedule, PolynomialFallsFromBaseToLast) {
  const Schedule line = Schedule::polynomial(1, 400);
  EXPECT_EQ(line.rate(0), 1);
  EXPECT_DOUBLE_EQ(line.rate(100), 0.75);
  EXPECT_EQ(line.rate(400), 0);
  const Schedule square = Schedule::polynomial(3, 400, 2, 1);
  EXPECT_EQ(square.rate(0), 3);
  EXPECT_DOUBLE_EQ(square.rate(300), 1 + 2.0 / 16);
  EXPECT_EQ(square.rate(400), 1);
  EXPECT_EQ(square.rate(401), 1);
}

TEST(Schedule, WarmsUpInALineToWhereTheScheduleIs) {
  const Schedule schedule = Schedule::polynomial(1, 400).with_warm_up(100, 0.25);
  EXPECT_EQ(schedule.rate(0), 0.25);
  EXPECT_DOUBLE_EQ(schedule.rate(50), 0.5);
  EXPECT_DOUBLE_EQ(schedule.rate(100), 0.75);
  EXPECT_DOUBLE_EQ(schedule.rate(200), 0.5);  // where it would be without
  EXPECT_EQ(Schedule::constant(1).with_warm_up(10, 0).rate(0), 0);
}

/// One of all kinds, with or without warm-up, and how long it is.
struct Example {
  Schedule schedule;
  double base;
  double last;  // the least that it comes to
  double warm_up;
  double samples;
};

Example any_schedule() {
  const double base = *rc::gen::inRange(1, 1000) * 1e-3;
  const double samples = *rc::gen::inRange(10, 1000000);
  const double last = base * (*rc::gen::inRange(0, 11) / 10.0);
  const double power = *rc::gen::inRange(1, 40) / 10.0;
  const double factor = *rc::gen::inRange(1, 11) / 10.0;
  const int kind = *rc::gen::inRange(0, 4);
  Example made{Schedule::constant(base), base, base, 0, samples};
  if (kind == 1) {
    made.schedule = Schedule::step(base, {samples / 3, samples / 2}, factor);
    made.last = base * factor * factor;
  } else if (kind > 1) {
    made.schedule = kind == 2 ? Schedule::cosine(base, samples, last)
                              : Schedule::polynomial(base, samples, power, last);
    made.last = last;
  }
  if (*rc::gen::arbitrary<bool>()) {
    made.warm_up = samples / *rc::gen::inRange(1, 10);
    const double target = made.schedule.rate(made.warm_up);
    made.schedule =
        made.schedule.with_warm_up(made.warm_up, target * (*rc::gen::inRange(0, 11) / 10.0));
  }
  return made;
}

TEST(Schedule, RisesInTheWarmUpAndFallsAfterIt) {
  const auto holds = [] {
    const Example made = any_schedule();
    constexpr double kRounding = 1e-15;
    double before = made.schedule.rate(0);
    for (int at = 1; at <= 300; ++at) {
      const double samples = made.samples * at / 200;
      const double rate = made.schedule.rate(samples);
      RC_ASSERT(rate >= 0);
      RC_ASSERT(rate <= made.base * (1 + kRounding));
      if (samples <= made.warm_up) RC_ASSERT(rate >= before - kRounding);
      if (samples > made.warm_up) RC_ASSERT(rate >= made.last * (1 - kRounding));
      if (samples - made.samples / 200 >= made.warm_up) RC_ASSERT(rate <= before + kRounding);
      before = rate;
    }
    // No jump where the warm-up ends.
    if (made.warm_up > 0) {
      const double end = made.schedule.rate(made.warm_up);
      RC_ASSERT(std::abs(made.schedule.rate(std::nextafter(made.warm_up, 0)) - end) < 1e-12);
    }
  };
  EXPECT_TRUE(rc::check("monotone on both sides of the warm-up's end", holds));
}

TEST(Schedule, FollowsTheFormulas) {
  const auto holds = [] {
    const double samples = *rc::gen::inRange(1, 1000000);
    const double seen = samples * *rc::gen::inRange(0, 1001) / 1000;
    const double power = *rc::gen::inRange(1, 60) / 10.0;
    const double part = seen / samples;
    const double cosine = 0.1 + 0.9 * (1 + std::cos(std::numbers::pi * part)) / 2;
    RC_ASSERT(std::abs(Schedule::cosine(1, samples, 0.1).rate(seen) - cosine) < 1e-15);
    const double polynomial = 0.1 + 0.9 * std::pow(1 - part, power);
    RC_ASSERT(std::abs(Schedule::polynomial(1, samples, power, 0.1).rate(seen) - polynomial) <
              1e-14);
  };
  EXPECT_TRUE(rc::check("as the C library computes them", holds));
}

TEST(Schedule, ComesBackFromItsBytes) {
  const auto holds = [] {
    const Example made = any_schedule();
    Schedule loaded = Schedule::constant(99);
    loaded.load(made.schedule.save());
    RC_ASSERT(loaded.save() == made.schedule.save());
    for (int at = 0; at < 30; ++at) {
      const double samples = made.samples * at / 20;
      RC_ASSERT(loaded.rate(samples) == made.schedule.rate(samples));
    }
  };
  EXPECT_TRUE(rc::check("the same rates", holds));
}

TEST(Schedule, RefusesBytesThatAreNoSchedule) {
  Schedule schedule = Schedule::constant(2);
  const auto good = Schedule::step(1, {10, 20}).save();
  for (std::size_t length = 0; length < good.size(); ++length) {
    if (length + 8 == good.size() || length + 16 == good.size()) continue;  // fewer milestones
    EXPECT_THROW(schedule.load(std::span(good).first(length)), Error) << length;
  }
  auto bad = good;
  bad[0] = std::byte{77};
  EXPECT_THROW(schedule.load(bad), Error);
  bad = good;
  bad[8] = std::byte{0xff};  // a negative base rate
  EXPECT_THROW(schedule.load(bad), Error);
  EXPECT_EQ(schedule.rate(0), 2);
}

template <typename Make>
std::string refusal(Make make) {
  try {
    make();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(Schedule, RefusesWhatMakesNoSense) {
  for (const double base : {0.0, -0.1, kNan, kInfinity}) {
    EXPECT_THAT(refusal([&] { Schedule::constant(base); }), HasSubstr("base rate is"));
  }
  EXPECT_EQ(refusal([] { Schedule::constant(-0.25); }),
            "elastic: Schedule: the base rate is -0.25; give a finite number above 0");
  for (const double samples : {0.0, -5.0, kNan, kInfinity}) {
    EXPECT_THAT(refusal([&] { Schedule::cosine(1, samples); }), HasSubstr("length is"));
    EXPECT_THAT(refusal([&] { Schedule::polynomial(1, samples); }), HasSubstr("length is"));
    EXPECT_THAT(refusal([&] { Schedule::constant(1).with_warm_up(samples, 0.1); }),
                HasSubstr("warm-up's length is"));
  }
  for (const double last : {-0.1, 1.1, kNan}) {
    EXPECT_THAT(refusal([&] { Schedule::cosine(1, 10, last); }), HasSubstr("last rate is"));
  }
  for (const double power : {0.0, -1.0, kNan, kInfinity}) {
    EXPECT_THAT(refusal([&] { Schedule::polynomial(1, 10, power); }), HasSubstr("power is"));
  }
  for (const double factor : {0.0, 1.5, kNan}) {
    EXPECT_THAT(refusal([&] { Schedule::step(1, {10}, factor); }), HasSubstr("factor"));
  }
  for (const std::vector<double>& milestones :
       std::vector<std::vector<double>>{{0}, {10, 10}, {20, 10}, {kNan}, {kInfinity}}) {
    EXPECT_THAT(refusal([&] { Schedule::step(1, milestones); }), HasSubstr("milestone"));
  }
  // The rate has come down to 0.5 where the warm-up ends.
  for (const double first : {-0.1, 0.6, kNan}) {
    EXPECT_THAT(refusal([&] { Schedule::polynomial(1, 10).with_warm_up(5, first); }),
                HasSubstr("first rate of the warm-up"));
  }
  const Schedule schedule = Schedule::constant(1);
  for (const double samples : {-1.0, kNan, kInfinity}) {
    EXPECT_THAT(refusal([&] { (void)schedule.rate(samples); }), HasSubstr("samples seen"));
  }
}

}  // namespace
}  // namespace elastic
