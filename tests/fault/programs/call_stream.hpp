#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/step_group.hpp>

#include "fault/programs/arguments.hpp"
#include "fault/programs/death.hpp"

namespace elastic::fault {

/// A stream of collectives, one in each step (several where they are named), all of whose results
/// are checked here and told for the test to compare.
class CallStream {
 public:
  CallStream(const Arguments& arguments, int slot);
  void run();

 private:
  struct Outcome {
    std::string sums;
    Contributors who;
  };
  struct Slots {
    std::vector<double> values;
    Contributors who;
  };

  void step(std::uint64_t index);
  Outcome call(const std::string& kind);
  Outcome allreduce();
  Outcome allocated();
  Outcome named();
  Outcome broadcast();
  Outcome allgather();
  Outcome reduce_scatter();
  Outcome alltoall();
  Outcome gather();
  Outcome scatter();
  Outcome reduce();
  Outcome scan();
  Outcome queued();
  Outcome step_group();
  Outcome half_step();
  Outcome named_kinds();
  Outcome sum_of_blocks(const Gathered<std::int64_t>& all) const;
  Slots sum_of_dimensions(ReduceOp op);
  Outcome adasum();
  Outcome hierarchical_adasum();
  Outcome join();
  Outcome grouped(const std::string& kind) const;
  Outcome sparse(const std::string& kind) const;

  const Arguments arguments_;
  const int slot_;
  Death death_;
  std::mt19937_64 own_;     ///< differs between workers
  const Allocation input_;  ///< of what is allocated
  const Allocation output_;
  StepGroup group_{elastic::context()};
  bool in_place_ = false;  ///< in the last of these calls
};

}  // namespace elastic::fault
