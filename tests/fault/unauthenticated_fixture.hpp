#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fault/fault_job.hpp"
#include "fault/process_facts.hpp"
#include "fault/step_checks.hpp"
#include "fault/stranger.hpp"

namespace elastic::testing {

/// A place where strangers can knock.
struct Door {
  const char* name;
  std::uint16_t port;
  pid_t owner;
  handshake::Purpose purpose;
};

/// A running job, whose members must not notice what happens at its doors.
class UnauthenticatedFixture : public ::testing::Test {
 protected:
  UnauthenticatedFixture() : job_({.np = 3, .transport = "tcp"}) {
    job_.start_all(arguments());
    EXPECT_TRUE(FaultJob::await_steps(job_.others({}), 10)) << job_.text();
  }

  std::vector<std::string> arguments() const {
    return {"kind=train", "until=" + job_.end_file(), "pause_us=500"};
  }
  /// The server's port, and one member's for data.
  std::vector<Door> doors() {
    const pid_t member = job_.worker(1).pid();
    return {{"control", listening_ports(job_.server_pid()).at(0), job_.server_pid(),
             handshake::Purpose::kControl},
            {"data", listening_ports(member).at(0), member, handshake::Purpose::kData}};
  }
  /// The members stay the same and make steps, and a joiner is admitted.
  void expect_unaffected() {
    const auto members = job_.others({});
    EXPECT_TRUE(FaultJob::await_steps(members, 20)) << job_.text();
    EXPECT_EQ(generation(*members.front()), 1U);
    EXPECT_TRUE(FaultJob::await_line(job_.start(arguments()), "entered")) << job_.text();
    EXPECT_TRUE(FaultJob::await_steps(members, 20)) << job_.text();
    finish(job_, job_.others({}));
  }

  FaultJob job_;
};

}  // namespace elastic::testing
