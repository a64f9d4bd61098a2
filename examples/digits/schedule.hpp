#pragma once

#include <array>
#include <cstdint>

#include <elastic/detail/named.hpp>
#include <elastic/schedule.hpp>

namespace digits {

enum class ScheduleKind : std::uint8_t { kConstant, kStep, kCosine, kPolynomial };

inline constexpr std::array<elastic::Named<ScheduleKind>, 4> kSchedules{{
    {"constant", ScheduleKind::kConstant},
    {"step", ScheduleKind::kStep},
    {"cosine", ScheduleKind::kCosine},
    {"polynomial", ScheduleKind::kPolynomial},
}};

/// The base rate over a training of `samples` samples, from `rate` on. kStep: a tenth of it in the
/// last third. kCosine, kPolynomial (quadratic): down to 0. The first `warm_up` samples, where that
/// is not 0, are a warm-up from a tenth of it.
elastic::Schedule schedule(ScheduleKind kind, double rate, double samples, double warm_up = 0);

}  // namespace digits
