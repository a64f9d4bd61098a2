#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Parts of messages that are for people and monitoring. No decision depends on them.
namespace elastic::rendezvous {

/// A worker's figures of its own training. Sums are since it began as this incarnation, those of
/// steps and compression since its process did.
struct WorkerFigures {
  double at_s = 0;                   ///< when they were taken, in seconds since it began
  std::uint64_t steps = 0;           ///< made in `run`
  double data_s = 0;                 ///< seconds of these steps in each phase of elastic::StepTime
  double compute_s = 0;              ///< in seconds
  double communication_s = 0;        ///< in seconds
  double view_change_s = 0;          ///< in seconds
  std::uint64_t shm_bytes = 0;       ///< sent over shared memory, or read from it in place
  std::uint64_t tcp_bytes = 0;       ///< sent over TCP
  std::uint64_t gradient_bytes = 0;  ///< given to a GradientCompressor; 0: there is none
  std::uint64_t encoded_bytes = 0;   ///< these gradients as they travel
  double ramp_gamma = 0;             ///< factor on the learning rate; 0: there is none
  double ramp_target = 0;            ///< the factor that the ramp goes to
  /// A view change that stopped this worker, from its notice to the next completed operation.
  struct Change {
    std::uint64_t generation = 0;  ///< of the view that it led to
    double seconds = 0;
    bool operator==(const Change&) const = default;
  };
  std::vector<Change> changes;  ///< the latest, oldest first

  bool operator==(const WorkerFigures&) const = default;
};

/// The past of a job since its server was started.
struct JobHistory {
  /// The views that came about for one cause, and how long their changes stopped the training.
  struct Views {
    std::string cause;  ///< "start", "loss", "leave", "join" or "repair"
    std::uint64_t count = 0;
    double recovery_s = 0;                  ///< sum of the recovery times, in seconds
    std::vector<std::uint64_t> recoveries;  ///< by recovery time: one number for each of
                                            ///< kRecoveryBounds, and one for longer ones
  };
  struct Event {
    std::int64_t at_ms = 0;           ///< time of day, in milliseconds since 1970
    std::string event;                ///< as in the event log
    std::string text;                 ///< for people
    std::optional<double> seconds{};  ///< of a "recovery"
  };
  struct Rate {
    std::int64_t at_ms = 0;
    double steps_per_second = 0;
  };
  std::vector<Views> views;
  std::vector<Event> events;  ///< the latest, oldest first
  std::vector<Rate> rates;    ///< of the last minutes, oldest first
};
/// Upper bounds of recovery times in JobHistory, in seconds.
inline constexpr std::array<double, 11> kRecoveryBounds{0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                        1,    2.5,   5,    10,  30};

}  // namespace elastic::rendezvous
