// The command on a host, by a real shell: words arrive as they were, and each failure has its code.
#include "rendezvous/hosts/agent_command.hpp"

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "integration/ended.hpp"
#include "integration/job.hpp"

namespace elastic::hosts {
namespace {

using launcher::HostsOptions;
using launcher::LaunchOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class AgentCommand : public ::testing::Test {
 protected:
  AgentCommand() {
    std::ofstream(program_)
        << "#!/bin/sh\nprintf '%s\\n' \"$@\" \"word=$WORD\" \"folder=$PWD\"\ncat\n";
    ::chmod(program_.c_str(), 0755);
    options_.job = "j";
    options_.command = {"./train it", "it's", "$HOME", "a\"b\\", "*"};
    setting_ = {program_.string(), scratch_.path().string(), {}};
  }
  testing::Ended run_script() {
    const std::string script = agent_script(options_, setting_, "h:1", {"b", 3, 2, 4});
    return testing::run({"/bin/sh", "-c", script});
  }

  const testing::ScratchFolder scratch_;
  const std::filesystem::path program_ = scratch_.path() / "elastic run";
  LaunchOptions options_;
  AgentSetting setting_;
};

TEST_F(AgentCommand, HandsWordsOverAsTheyAre) {
  setting_.environment = {{"WORD", "it's $HOME; exit 9"}};
  const testing::Ended ended = run_script();
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.output, HasSubstr("--join\nh:1\n"));
  EXPECT_THAT(ended.output, HasSubstr("-np\n2\n--slots\n4\n--host-name\nb\n--host-number\n3\n"));
  EXPECT_THAT(ended.output, HasSubstr("--\n./train it\nit's\n$HOME\na\"b\\\n*\n"));
  EXPECT_THAT(ended.output, HasSubstr("word=it's $HOME; exit 9\n"));
  EXPECT_THAT(ended.output, HasSubstr("folder=" + scratch_.path().string() + "\n"));
}

TEST_F(AgentCommand, TheAgentPrepares) {
  options_.prepare = "fetch 'the data'";
  EXPECT_THAT(run_script().output, HasSubstr("--prepare\nfetch 'the data'\n"));
}

TEST_F(AgentCommand, WithoutTheProgramItIsLookedForInThePath) {
  setting_.elasticrun = "/nowhere/elasticrun";
  setting_.environment = {{"PATH", "/nowhere"}};
  EXPECT_EQ(run_script().status, 127);
}

TEST(AgentArguments, OfSshComeAfterTheUsersOwn) {
  HostsOptions options;
  options.ssh = "/usr/bin/ssh -v";
  options.ssh_arguments = "-p 2222  -o ConnectTimeout=9";
  const auto words = agent_arguments(options, "b", false, "echo 'x'");
  const std::vector<std::string> first(words.begin(), words.begin() + 6);
  EXPECT_THAT(first, ElementsAre("/usr/bin/ssh", "-v", "-p", "2222", "-o", "ConnectTimeout=9"));
  EXPECT_THAT(words, ::testing::Contains("BatchMode=yes"));
  const std::vector<std::string> last(words.end() - 3, words.end());
  EXPECT_THAT(last, ElementsAre("--", "b", "exec sh -c 'echo '\\''x'\\'''"));
  options.ssh = "remote";
  options.ssh_arguments.clear();
  EXPECT_THAT(agent_arguments(options, "b", false, "true"),
              ElementsAre("remote", "b", "exec sh -c 'true'"));
  EXPECT_THAT(agent_arguments(options, "b", true, "true"), ElementsAre("sh", "-c", "true"));
}

TEST(AgentEnvironment, HasElasticsVariablesAndThoseOfTheUser) {
  const std::map<std::string, std::string> here = {{"ELASTIC_ENCRYPT", "1"},
                                                   {"ELASTIC_JOB", "other"},
                                                   {"ELASTIC_SECRET", "s"},
                                                   {"PATH", "/bin"},
                                                   {"X", "x"}};
  EXPECT_THAT(environment_of_agents({"X", "Y=y=z"}, here).value(),
              ElementsAre(Pair("ELASTIC_ENCRYPT", "1"), Pair("X", "x"), Pair("Y", "y=z")));
  EXPECT_THAT(environment_of_agents({"Z"}, here).status().message(),
              HasSubstr("--env Z: it is not set here; give it as Z=VALUE"));
  EXPECT_THAT(environment_of_agents({"A B=1"}, here).status().message(),
              HasSubstr("write NAME or NAME=VALUE"));
  EXPECT_THAT(environment_of_agents({"RANK=7"}, here).status().message(),
              HasSubstr("--env RANK=7: elasticrun itself sets RANK for each worker"));
  EXPECT_THAT(environment_of_agents({"ELASTIC_SLOT"}, here).status().message(),
              HasSubstr("elasticrun itself sets ELASTIC_SLOT"));
}

}  // namespace
}  // namespace elastic::hosts
