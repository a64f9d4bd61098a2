#pragma once

#include <cstddef>

#include "collectives/model/network.hpp"
#include "collectives/plan/choose.hpp"
#include "collectives/plan/hosts.hpp"
#include "collectives/plan/parts.hpp"
#include "collectives/plan/tuning.hpp"

namespace elastic::model {

/// A job on a network, with everything that its plans depend on.
struct Job {
  plan::Hosts hosts;
  int flows = 1;  ///< TCP connections that carry the data of a link between hosts
  std::size_t segment_bytes = 0;
  plan::Thresholds thresholds;
};

/// What the links of a job cost when all ranks send at once, as the library measures it.
plan::LinkCosts link_costs(const Network& network, const plan::Hosts& hosts, int flows);

/// The job as the library tunes it on this network. `flows`: 0 for as many as the library opens,
/// of which it uses no more than help.
Job tuned_job(const Network& network, plan::Hosts hosts, int flows);

/// The algorithm that the library chooses.
plan::AllreduceAlgorithm chosen(const Job& job, std::size_t bytes);
/// The cheapest one of those that the ranks can run.
plan::AllreduceAlgorithm cheapest(const Network& network, const Job& job, plan::Elements elements);

/// What an allreduce takes, and what it is limited by.
struct Price {
  double seconds = 0;
  /// The share of this time in which the busiest one of each kind is in use.
  double line = 0;
  double thread = 0;
  double cores = 0;
  double memory = 0;
};

/// Prices one call of many, back to back: the plan of `algorithm`, and for large tensors the
/// barrier after it.
Price price(const Network& network, const Job& job, plan::AllreduceAlgorithm algorithm,
            plan::Elements elements);

}  // namespace elastic::model
