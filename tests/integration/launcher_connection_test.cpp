// elasticrun loses its connection with its server: the job is launched, grown, stopped and told of
// as if nothing had happened.
#include <signal.h>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "integration/taken_sockets.hpp"
#include "integration/trainer_job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

enum class Way { kCut, kServerMishears, kLauncherMishears };

class LauncherConnection : public ::testing::TestWithParam<Way> {
 protected:
  static constexpr auto kTimeLimit = std::chrono::milliseconds(30000) * kHangFactor;

  void SetUp() override {
    ASSERT_TRUE(job_.wait_until_trained(2)) << job_.output();
    if (!may_take_sockets_of(job_.launcher().pid())) {
      GTEST_SKIP() << "may not look into other processes: needs ptrace";
    }
  }

  void break_connection() {
    const std::string address = job_.address();
    const int port = std::stoi(address.substr(address.rfind(':') + 1));
    TakenSockets taken;
    ASSERT_TRUE(eventually(kTimeLimit, [&] {
      taken = TakenSockets::of(job_.launcher().pid(), port);
      return static_cast<bool>(taken);
    }));
    const std::string noise = "what nobody has said in any frame";
    switch (GetParam()) {
      case Way::kCut:
        ASSERT_EQ(::shutdown(taken.launcher.get(), SHUT_RDWR), 0);
        break;
      case Way::kServerMishears:
        ASSERT_GT(::send(taken.launcher.get(), noise.data(), noise.size(), MSG_NOSIGNAL), 0);
        break;
      case Way::kLauncherMishears:
        ASSERT_GT(::send(taken.server.get(), noise.data(), noise.size(), MSG_NOSIGNAL), 0);
        break;
    }
  }
  bool noticed() {
    return eventually(kTimeLimit, [&] {
      return job_.output().find("lost the rendezvous server, connects again") != std::string::npos;
    });
  }

  TrainerJob job_{{"-np", "2", "--max-np", "3", "--drain-seconds", "1000"}};
};

TEST_P(LauncherConnection, AWorkerIsAddedAfterwardsAndTheEndIsTold) {
  break_connection();
  ASSERT_TRUE(noticed()) << job_.output();
  // While no launcher is connected, the request ends in an error; repeat it until one is.
  std::string answer;
  ASSERT_TRUE(eventually(kTimeLimit, [&] {
    return job_.control({"add", "1"}, &answer);
  })) << answer;
  EXPECT_TRUE(job_.wait_until_trained(3)) << job_.output();
  break_connection();
  EXPECT_EQ(job_.finish(), 0) << job_.output();
  EXPECT_THAT(job_.told("result"),
              AllOf(SizeIs(3), Each(Pair(::testing::_, StartsWith("finished")))));
}

TEST_P(LauncherConnection, AnInterruptEndsTheStepFirst) {
  break_connection();
  ::kill(job_.launcher().pid(), SIGINT);
  EXPECT_EQ(job_.launcher().wait(kTimeLimit), 1) << job_.output();
  EXPECT_THAT(job_.output(), HasSubstr("stopped by SIGINT"));
  EXPECT_THAT(job_.told("result"),
              AllOf(SizeIs(2), Each(Pair(::testing::_, StartsWith("stopped")))));
}

INSTANTIATE_TEST_SUITE_P(Lost, LauncherConnection,
                         ::testing::Values(Way::kCut, Way::kServerMishears, Way::kLauncherMishears),
                         [](const auto& way) {
                           switch (way.param) {
                             case Way::kCut:
                               return "Cut";
                             case Way::kServerMishears:
                               return "ServerMishears";
                             default:
                               return "LauncherMishears";
                           }
                         });

}  // namespace
}  // namespace elastic::testing
