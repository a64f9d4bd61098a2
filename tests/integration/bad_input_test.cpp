// Mistakes of users and of broken programs end in clear errors in bounded time, and do the job no
// harm. Real processes.
#include <chrono>
#include <string>
#include <unistd.h>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "integration/ended.hpp"
#include "integration/trainer_job.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// ---- wrong calls --------------------------------------------------------------------------------
struct WrongCalls {
  std::string mode;
  std::string ranks;
  std::string transport;
};

void PrintTo(const WrongCalls& calls, std::ostream* out) {
  *out << calls.mode << " by " << calls.ranks << " over " << calls.transport;
}

class WrongCallsTest : public ::testing::TestWithParam<WrongCalls> {};

TEST_P(WrongCallsTest, AreErrorsAndTheJobGoesOn) {
  const Ended ended =
      run({ELASTICRUN, "-np", GetParam().ranks, "--max-restarts", "0", BAD_CALLS, GetParam().mode},
          {"ELASTIC_TRANSPORT=" + GetParam().transport});
  EXPECT_EQ(ended.status, 0) << ended.output;
}

INSTANTIATE_TEST_SUITE_P(
    Modes, WrongCallsTest,
    ::testing::Values(WrongCalls{"mismatch", "2", "shm"}, WrongCalls{"mismatch", "4", "tcp"},
                      WrongCalls{"named", "2", "tcp"}, WrongCalls{"named", "3", "shm"},
                      WrongCalls{"misuse", "1", "shm"}, WrongCalls{"misuse", "3", "shm"},
                      WrongCalls{"callbacks", "1", "shm"}, WrongCalls{"callbacks", "3", "shm"},
                      WrongCalls{"run-again", "3", "shm"}),
    [](const auto& param) {
      return (param.param.mode == "run-again" ? "run_again" : param.param.mode) + "_" +
             param.param.ranks;
    });

/// Several tries: a rank that ends too early takes the error from others only now and then.
TEST(Mismatch, IsTheResultOnEveryRankThoughOthersHaveEnded) {
  constexpr int kTries = 3;
  for (const std::string mode : {"ended", "ended-named"}) {
    for (const int ranks : {2, 3}) {
      for (int i = 0; i < kTries; ++i) {
        const Ended ended =
            run({ELASTICRUN, "-np", std::to_string(ranks), "--max-restarts", "0", BAD_CALLS, mode});
        EXPECT_NE(ended.status, -1) << "hangs";
        for (int rank = 0; rank < ranks; ++rank) {
          const std::string line = "[" + std::to_string(rank) + "] a mismatch: elastic: ";
          EXPECT_THAT(ended.output, HasSubstr(line)) << mode;
        }
      }
    }
  }
}

/// The worker cannot tell what the others know of that call, and they must not wait for it.
TEST(Exceptions, MakeTheWorkerLeaveAndTheOthersGoOn) {
  const Ended ended = run({ELASTICRUN, "-np", "3", "--max-restarts", "0", BAD_CALLS, "thrown"});
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("[1] after an exception: elastic: "));
}

TEST(MixedAlgorithms, AreAnErrorThatNamesThem) {
  const ScratchFolder folder;
  const Ended ended = run({ELASTICRUN, "-np", "2", "--max-restarts", "0", "/bin/sh", "-c",
                           "test $RANK = 0 && export ELASTIC_ALGORITHM=ring; exec " DIGIT_STREAM
                           " blocking 10 1000 1 " +
                               folder.path().string()});
  EXPECT_NE(ended.status, -1) << "hangs";
  EXPECT_THAT(ended.output, HasSubstr("ELASTIC_ALGORITHM has to be the same on all ranks: "
                                      "rank 0 has 'ring', rank 1 has none"));
}

// ---- joiners
// -------------------------------------------------------------------------------------
/// What a joiner tells of its refusal; the job goes on without it.
std::string refusal_of_joiner(const std::string& mode) {
  TrainerJob job({"-np", "2", "--max-np", "3", "--max-restarts", "0"}, mode);
  EXPECT_TRUE(job.wait_until_trained(2)) << job.output();
  EXPECT_TRUE(job.control({"add", "1"}));
  EXPECT_TRUE(job.wait_until_ended(1)) << job.output();
  const std::string told = job.told("result")[job.pid(2)];
  // A worker that fails when the job is done would be a failure of the job.
  EXPECT_TRUE(eventually(milliseconds(20000) * kHangFactor, [&] {
    return job.output().find("going on without it") != std::string::npos;
  })) << job.output();
  EXPECT_EQ(job.finish(), 0) << job.output();
  return told;
}

TEST(Joiner, WithAnotherStateIsRefusedWithTheDifference) {
  EXPECT_THAT(refusal_of_joiner("layout"),
              AllOf(HasSubstr("weights"), HasSubstr("5000"), HasSubstr("5001")));
}

TEST(Joiner, WithOtherOptionsIsRefusedWithTheDifference) {
  EXPECT_THAT(refusal_of_joiner("options"),
              HasSubstr("Options::compare_steps: the job has '0', this worker '5'; give it, or its "
                        "variable ELASTIC_COMPARE_STEPS, the same value on all workers"));
  EXPECT_THAT(refusal_of_joiner("algorithm"),
              HasSubstr("Options::algorithm: the job has 'auto', this worker 'ring'"));
}

TEST(Joiner, WithAnotherBackendIsRefusedWithTheDifference) {
#ifdef GLOO_IS_BUILT
  EXPECT_THAT(refusal_of_joiner("backend"),
              HasSubstr("Options::backend: the job has 'native', this worker 'gloo'"));
#else
  GTEST_SKIP() << "the backend gloo is not built";
#endif
}

TEST(Members, WithOtherOptionsEndTheJobWithTheDifference) {
  TrainerJob job({"-np", "3", "--max-restarts", "0"}, "links");
  EXPECT_TRUE(job.wait_until_ended(3)) << job.output();
  for (const auto& [pid, told] : job.told("result")) {
    EXPECT_THAT(told, ::testing::ContainsRegex("Options::all_linked. has to be the same on all "
                                               "workers: it is (16|0) at slot-[012], and (16|0) "
                                               "at slot-[012]"));
  }
  EXPECT_NE(job.finish(), 0) << job.output();
}

// ---- wrong configuration -----------------------------------------------------------------------
TEST(Init, NamesTheAddressWithoutAServer) {
  const ScratchFolder folder;
  const auto secret = folder.path() / "secret";
  write_secret(secret, 'a');
  const auto before = std::chrono::steady_clock::now();
  const Ended ended =
      run({HELLO_ALLREDUCE}, {"ELASTIC_RENDEZVOUS=127.0.0.1:1", "ELASTIC_INIT_TIMEOUT_MS=500",
                              "ELASTIC_JOB=none", "ELASTIC_SECRET_FILE=" + secret.string()});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("refused")));
  // Not the minute that it waits unless told otherwise.
  EXPECT_LT(std::chrono::steady_clock::now() - before, milliseconds(30000));
}

TEST(Init, SaysAfterSomeSecondsThatNoServerAnswers) {
  const ScratchFolder folder;
  const auto secret = folder.path() / "secret";
  write_secret(secret, 'a');
  const Ended ended =
      run({HELLO_ALLREDUCE}, {"ELASTIC_RENDEZVOUS=127.0.0.1:1", "ELASTIC_INIT_TIMEOUT_MS=6500",
                              "ELASTIC_JOB=none", "ELASTIC_SECRET_FILE=" + secret.string()});
  EXPECT_THAT(ended.output, HasSubstr("no rendezvous server answers yet at 127.0.0.1:1: "));
}

struct WrongVariable {
  std::string name;
  std::string value;
  std::string hint;
};

TEST(Init, NamesTheVariableThatIsWrong) {
  const std::vector<WrongVariable> wrong = {
      {"ELASTIC_TRANSPROT", "shm", "ELASTIC_TRANSPORT"},
      {"ELASTIC_BUCKET", "1M", "did you mean ELASTIC_BUCKET_BYTES?"},
      {"ELASTIC_TRANSPORT", "pigeon", "pigeon"},
      {"ELASTIC_TCP_STREAMS", "-1", "from 0 to 64"},
      {"ELASTIC_TCP_STREAMS", "65", "from 0 to 64"},
      {"ELASTIC_TCP_STREAMS", "two", "two"},
      {"ELASTIC_TCP_CONGESTION", "pigeon", "pigeon"},
      {"ELASTIC_NCCL_MAX_CTAS", "65", "from 0 to 64"},
      {"ELASTIC_SHM_RING_BYTES", "1000", "65536"},
      {"ELASTIC_BUCKET_BYTES", "-1", "-1"},
      {"ELASTIC_INIT_TIMEOUT_MS", "1s", "milliseconds"},
      {"ELASTIC_BIND", "nowhere", "nowhere"},
      {"ELASTIC_RESIZE_POLICY", "slowly", "one of ramp immediate rescale reset none"},
      {"ELASTIC_RENDEZVOUS", "nowhere", "'nowhere' is not an address"},
      {"ELASTIC_SECRET_FILE", "/no/such/file", "/no/such/file"}};
  const ScratchFolder folder;
  const auto secret = folder.path() / "secret";
  write_secret(secret, 'a');
  for (const WrongVariable& variable : wrong) {
    const Ended ended =
        run({HELLO_ALLREDUCE},
            {"ELASTIC_RENDEZVOUS=127.0.0.1:1", "ELASTIC_JOB=none", "ELASTIC_INIT_TIMEOUT_MS=200",
             "ELASTIC_SECRET_FILE=" + secret.string(), variable.name + "=" + variable.value});
    EXPECT_EQ(ended.status, 1) << variable.name;
    EXPECT_THAT(ended.output, HasSubstr(variable.hint)) << variable.name;
    if (variable.name != "ELASTIC_BIND" && variable.name != "ELASTIC_SECRET_FILE") {
      EXPECT_THAT(ended.output, HasSubstr(variable.name));
    }
  }
}

TEST(Launcher, RefusesWhatCannotBe) {
  struct Wrong {
    std::vector<std::string> options;
    std::string hint;
  };
  const std::vector<Wrong> wrong = {
      {{"-np", "0", HELLO_ALLREDUCE}, "-np"},
      {{"-np", "2", "--min-np", "3", "--max-np", "2", HELLO_ALLREDUCE}, "--min-np"},
      {{"-np", "1", "./no_such_program"}, "no_such_program"},
      {{"-np", "many", HELLO_ALLREDUCE}, "many"},
      {{"-np"}, "-np lacks its number"},
      {{"--frob", "-np", "1", HELLO_ALLREDUCE}, "--frob"}};
  for (const Wrong& one : wrong) {
    std::vector<std::string> command{ELASTICRUN};
    command.insert(command.end(), one.options.begin(), one.options.end());
    const Ended ended = run(command);
    EXPECT_EQ(ended.status, 2) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(one.hint));
  }
}

TEST(Launcher, SaysThatThePortIsTaken) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const Ended ended = run({ELASTICRUN, "-np", "1", "--port", port, HELLO_ALLREDUCE});
  ::close(fd);
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, HasSubstr(port));
}

TEST(Launcher, GivesUpAProgramThatDiesAtOnceEachTime) {
  const Ended ended = run({ELASTICRUN, "-np", "2", "--max-restarts", "2", "/bin/sh", "-c",
                           "echo the last words; kill -KILL $$"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("| the last words"), HasSubstr("died of signal 9"),
                                  HasSubstr("2 of 2 restarts are used")));
}

}  // namespace
}  // namespace elastic::testing
