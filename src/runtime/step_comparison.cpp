#include "runtime/step_comparison.hpp"

#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "coordinator/operation.hpp"
#include "runtime/step_log.hpp"

namespace elastic::runtime {
namespace {

/// A StepTime in a message: nanoseconds, in the order of its fields.
using Message = std::array<std::int64_t, 4>;

Message to_message(const StepTime& time) {
  return {time.data.count(), time.compute.count(), time.communication.count(),
          time.view_change.count()};
}

StepTime to_time(const Message& message) {
  using Nanoseconds = StepTime::Duration;
  return {Nanoseconds(message[0]), Nanoseconds(message[1]), Nanoseconds(message[2]),
          Nanoseconds(message[3])};
}

}  // namespace

Status compare_steps(std::uint64_t commit, StepClock& clock, Control& control) {
  const Message own = to_message(clock.so_far());
  std::vector<StepTime> by_rank;
  coordinator::AllgatherOperation exchange(
      ConstTensorView{own.data(), own.size(), DType::kI64, {}},
      [&](std::span<const std::byte> bytes, const std::vector<std::size_t>& /*counts*/) {
        for (; bytes.size() >= sizeof(Message); bytes = bytes.subspan(sizeof(Message))) {
          Message message;
          std::memcpy(message.data(), bytes.data(), sizeof(Message));
          by_rank.push_back(to_time(message));
        }
      },
      transport::OwnCall::kStepTimes);
  const auto done = control.lane(kUnnamedLane).run(exchange, control.options().view_timeout);
  if (!done.ok()) return done.status();
  clock.compare(commit, std::move(by_rank));
  control.set_slowest(clock.times().slowest);
  if (control.view()->members->rank == 0) log_slowest(clock.times());
  return {};
}

}  // namespace elastic::runtime
