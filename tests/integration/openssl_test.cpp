// Programs under an OpenSSL that cannot compute what authenticates connections: none of them
// starts.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/ended.hpp"
#include "integration/job.hpp"

namespace elastic::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kConfiguration = std::string("OPENSSL_CONF=") + OPENSSL_WITHOUT_DIGESTS;

void expect_refusal(const std::vector<std::string>& command,
                    std::vector<std::string> environment = {}) {
  environment.push_back(kConfiguration);
  const Ended ended = run(command, environment);
  EXPECT_EQ(ended.status, 1) << command[0] << ": " << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("connections cannot be authenticated"),
                                  HasSubstr("HMAC-SHA256"), HasSubstr(OPENSSL_WITHOUT_DIGESTS),
                                  HasSubstr("'default'"), Not(HasSubstr("the worker runs"))))
      << command[0];
}

TEST(OpensslWithoutDigests, NoServerStarts) {
  expect_refusal({ELASTIC_RENDEZVOUS, "--np", "1"});
}

TEST(OpensslWithoutDigests, NoJobStarts) {
  const ScratchFolder folder;
  expect_refusal({ELASTICRUN, "-np", "1", "/bin/echo", "the worker runs"},
                 {"XDG_RUNTIME_DIR=" + folder.path().string()});
}

TEST(OpensslWithoutDigests, NoControlCommandConnects) {
  const ScratchFolder folder;
  const auto secret = folder.path() / "secret";
  write_secret(secret, 'a');
  expect_refusal({ELASTICRUN, "ctl", "--rendezvous", "127.0.0.1:1", "--job", "none",
                  "--secret-file", secret.string(), "status"});
}

TEST(OpensslWithoutDigests, NoWorkerConnects) {
  const ScratchFolder folder;
  const auto secret = folder.path() / "secret";
  write_secret(secret, 'a');
  expect_refusal({HELLO_ALLREDUCE}, {"ELASTIC_RENDEZVOUS=127.0.0.1:1", "ELASTIC_JOB=none",
                                     "ELASTIC_SECRET_FILE=" + secret.string()});
}

}  // namespace
}  // namespace elastic::testing
