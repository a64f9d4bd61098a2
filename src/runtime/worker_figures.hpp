#pragma once

#include <deque>

#include "base/clock.hpp"
#include "base/training_figures.hpp"
#include "collectives/transport/byte_count.hpp"
#include "elastic/diagnostics.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::runtime {

/// The figures of this worker, for a heartbeat.
rendezvous::WorkerFigures worker_figures(Duration since_begin, const StepTimes& steps,
                                         const std::deque<ViewChange>& changes,
                                         const transport::LinkTraffic& traffic,
                                         const TrainingFigures& training);

}  // namespace elastic::runtime
