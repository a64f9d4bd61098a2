// All workers of a job die on a host where the server cannot look for them. Their agent lives.
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fault/network_fixture.hpp"
#include "fault/process_facts.hpp"

namespace elastic::testing {
namespace {

using ProvenEnd = NetworkTest;

/// The agent has seen the processes end, so the server does not wait for their connections.
TEST_F(ProvenEnd, IsNotWaitedFor) {
  FaultJob& job = make_job({.np = 2});
  const std::string output = job.folder().string();
  std::vector<std::string> command = hosts_->enter(1);
  for (const std::string& word :
       {std::string(ELASTICRUN), std::string("--join"), job.address(), std::string("--secret-file"),
        job.secret_file().string(), std::string("-np"), std::string("2"),
        std::string("--max-restarts"), std::string("0"), std::string("--output-dir"), output,
        std::string(FAULT_WORKER), std::string("kind=train"), "until=" + job.end_file(),
        std::string("pause_us=1000")}) {
    command.push_back(word);
  }
  Job agent(command, job.folder() / "agent");
  std::vector<WorkerLog> workers;
  for (const int slot : {0, 1}) {
    workers.emplace_back(job.folder() / ("worker-" + std::to_string(slot) + ".out"));
  }
  ASSERT_TRUE(eventually(kLong,
                         [&] {
                           for (WorkerLog& worker : workers) {
                             worker.refresh();
                             if (worker.steps().size() < 20) return false;
                           }
                           return true;
                         }))
      << agent.output() << job.text();
  for (const pid_t worker : children_of(agent.pid(), "fault_worker")) ::kill(worker, SIGKILL);
  EXPECT_EQ(agent.wait(kLong), 1) << agent.output() << job.text();
  EXPECT_NE(agent.output().find("its launcher saw its process end; all members are gone"),
            std::string::npos)
      << agent.output() << job.text();
}

}  // namespace
}  // namespace elastic::testing
