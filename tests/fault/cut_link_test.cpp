// The link between two live hosts is cut: no worker may be given up for that.
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/network_fixture.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

struct Cut {
  std::string name;
  int np;
  std::string kind;
  std::vector<std::pair<std::size_t, std::size_t>> cuts;  ///< from one slot to another

  friend std::ostream& operator<<(std::ostream& out, const Cut& cut) { return out << cut.name; }
};

class CutLink : public NetworkTest, public ::testing::WithParamInterface<Cut> {};

TEST_P(CutLink, EvictsNoMemberAndTheJobGoesOn) {
  const Cut& cut = GetParam();
  FaultJob& job = make_job({.np = cut.np, .evict_after = kUsualEviction}, 1);
  const std::vector<std::string> arguments{"kind=" + cut.kind, "until=" + job.end_file(),
                                           "pause_us=500", "elements=20000"};
  job.start_all(arguments);
  const auto all = job.others({});
  ASSERT_TRUE(FaultJob::await_steps(all, 20)) << job.text();
  for (const auto& [from, to] : cut.cuts) hosts_->cut(host_of(from), host_of(to));
  ASSERT_TRUE(FaultJob::await_steps(all, 50)) << job.text();
  if (cut.kind == "train") {  // joiners too: they have other links to make
    FaultWorker& joiner = job.start(arguments);
    ASSERT_TRUE(FaultJob::await_line(joiner, "entered")) << job.text();
    ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
  }
  for (const auto& [from, to] : cut.cuts) hosts_->mend(host_of(from), host_of(to));
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 50)) << job.text();
  EXPECT_EQ(all.front()->log().steps().back().contributors, job.size()) << job.text();
  for (FaultWorker* worker : all) {
    for (const Step& step : worker->log().steps()) {
      EXPECT_GE(step.contributors, all.size()) << "a worker was given up";
    }
  }
  finish(job, job.others({}));
}

INSTANTIATE_TEST_SUITE_P(
    Between, CutLink,
    ::testing::Values(Cut{"neighbours_both_ways", 4, "allreduce", {{1, 2}, {2, 1}}},
                      Cut{"neighbours_one_way", 4, "allreduce", {{1, 2}}},
                      Cut{"the_other_way", 4, "named", {{2, 1}}},
                      Cut{"across_both_ways", 4, "mixed", {{0, 2}, {2, 0}}},
                      Cut{"in_a_training", 3, "train", {{0, 1}, {1, 0}}}),
    ::testing::PrintToStringParamName());

}  // namespace
}  // namespace elastic::testing
