// The server program among other users of its machine and its network.
#include <fstream>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

#include "base/handshake.hpp"
#include "integration/job.hpp"
#include "rendezvous/client/control_client.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::chrono::milliseconds kSoon = std::chrono::milliseconds(20000) * kHangFactor;

std::size_t count_of(const std::string& what, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

class ServerProgramTest : public ::testing::Test {
 protected:
  /// Through a shell, so that `before` can know the server's process id: it is $$.
  void start(const std::vector<std::string>& options, const std::string& before = ":") {
    std::string command =
        before + "; exec " + std::string(ELASTIC_RENDEZVOUS) + " --np 1 --port-file " + port_file();
    for (const std::string& option : options) command += " " + option;
    server_.emplace(std::vector<std::string>{"/bin/sh", "-c", command}, scratch_.path() / "output",
                    std::vector<std::string>{"FOLDER=" + scratch_.path().string()});
  }
  bool serves() const {
    return eventually(kSoon, [&] { return std::filesystem::exists(port_file()); });
  }
  std::string port_file() const { return (scratch_.path() / "port").string(); }
  std::uint16_t port() const {
    std::ifstream file(port_file());
    const std::string address = nlohmann::json::parse(file).at("address");
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }

  ScratchFolder scratch_;
  std::optional<Job> server_;
};

TEST_F(ServerProgramTest, WritesItsPortThroughNoLinkOfAnotherUser) {
  std::ofstream(scratch_.path() / "victim") << "precious";
  start({}, "ln -s victim $FOLDER/port.$$.new; ln -s victim $FOLDER/port.new");
  ASSERT_TRUE(serves()) << server_->output();
  EXPECT_GT(port(), 0);
  EXPECT_EQ(read_file(scratch_.path() / "victim"), "precious");
}

TEST_F(ServerProgramTest, ReplacesTheFileOfAnEarlierServer) {
  std::ofstream(port_file()) << "{}";
  start({});
  EXPECT_TRUE(eventually(kSoon, [&] { return read_file(port_file()) != "{}"; }));
  EXPECT_GT(port(), 0);
}

TEST_F(ServerProgramTest, WritesFewLinesAboutManyStrangers) {
  start({"--log-level", "info"});
  ASSERT_TRUE(serves()) << server_->output();
  constexpr int kStrangers = 300;
  const std::string greeting = "GET / HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\n";
  for (int i = 0; i < kStrangers; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_GT(::send(socket, greeting.data(), greeting.size(), MSG_NOSIGNAL), 0);
    char byte = 0;
    while (::recv(socket, &byte, 1, 0) > 0) {
    }
    ::close(socket);
  }
  const std::size_t lines = count_of("refused the connection of", server_->output());
  EXPECT_GE(lines, 1U);
  EXPECT_LT(lines, kStrangers / 4U) << server_->output();
}

TEST_F(ServerProgramTest, SaysThatADialerHasAnotherSecret) {
  start({"--log-level", "info", "--job", "mine"});
  ASSERT_TRUE(serves()) << server_->output();
  const auto answer =
      rendezvous::request("127.0.0.1:" + std::to_string(port()), "mine", random_secret(),
                          rendezvous::StatusRequest{}, Milliseconds(20000));
  EXPECT_THAT(answer.status().message(), HasSubstr("wrong secret"));
  EXPECT_TRUE(eventually(kSoon, [&] {
    return count_of("another secret?", server_->output()) == 1;
  })) << server_->output();
}

TEST_F(ServerProgramTest, WarnsOnceWhereItsConnectionsLeaveTheMachineInTheClear) {
  start({"--bind", "0.0.0.0"});
  ASSERT_TRUE(serves()) << server_->output();
  EXPECT_EQ(count_of("--encrypt", server_->output()), 1U) << server_->output();
  EXPECT_THAT(server_->output(), HasSubstr("0.0.0.0"));
}

TEST_F(ServerProgramTest, DoesNotWarnOnLoopbackOrWithEncryption) {
  start({});
  ASSERT_TRUE(serves()) << server_->output();
  EXPECT_THAT(server_->output(), Not(HasSubstr("--encrypt")));
  std::filesystem::remove(port_file());
  start({"--bind", "0.0.0.0", "--encrypt"});
  ASSERT_TRUE(serves()) << server_->output();
  EXPECT_THAT(server_->output(), Not(HasSubstr("without")));
}

/// An agent that asks for encryption is not to send its data in the clear.
TEST_F(ServerProgramTest, ItsConnectionFileTurnsNoEncryptionOff) {
  const std::string contact = (scratch_.path() / "contact").string();
  start({"--connection-file", contact});
  ASSERT_TRUE(serves()) << server_->output();
  Job agent({ELASTICRUN, "--connection-file", contact, "--encrypt", "-np", "1", "true"},
            scratch_.path() / "agent");
  EXPECT_EQ(agent.wait(kSoon), 2) << agent.output();
  EXPECT_THAT(agent.output(), HasSubstr("asks for encryption, and the server of " + contact));
}

TEST_F(ServerProgramTest, ItsConnectionFileIsOfNoOtherJob) {
  const std::string contact = (scratch_.path() / "contact").string();
  start({"--connection-file", contact, "--job", "mine"});
  ASSERT_TRUE(serves()) << server_->output();
  const std::vector<std::vector<std::string>> commands{
      {ELASTICRUN, "--connection-file", contact, "--job", "other", "-np", "1", "true"},
      {ELASTICRUN, "ctl", "--connection-file", contact, "--job", "other", "status"}};
  for (const auto& command : commands) {
    Job refused(command, scratch_.path() / "refused");
    EXPECT_EQ(refused.wait(kSoon), 2) << refused.output();
    EXPECT_THAT(refused.output(), HasSubstr("is of job mine; leave --job out"));
  }
}

TEST_F(ServerProgramTest, MistakesHaveItsNameInFront) {
  Job without({ELASTIC_RENDEZVOUS}, scratch_.path() / "without");
  EXPECT_EQ(without.wait(kSoon), 2);
  EXPECT_THAT(without.output(), ::testing::StartsWith("elastic-rendezvous: --np is required\n"));
  Job help({ELASTIC_RENDEZVOUS, "--help"}, scratch_.path() / "help");
  EXPECT_EQ(help.wait(kSoon), 0);
  EXPECT_THAT(help.output(), ::testing::StartsWith("Rendezvous server"));
}

/// Its starter believes otherwise that a training has been done.
TEST_F(ServerProgramTest, WhereNoWorkerComesItSaysSoAndEndsWithAnError) {
  start({"--exit-when-done", "--first-worker-timeout-ms", "500"});
  EXPECT_EQ(server_->wait(kSoon), 1);
  EXPECT_THAT(server_->output(), HasSubstr("elastic-rendezvous: no worker came within 0.5 s "
                                           "(--first-worker-timeout-ms)\n"));
}

TEST_F(ServerProgramTest, SaysWhatAStoreNeeds) {
  const std::string shared = "--job j --port 1 --secret-file $FOLDER/secret";
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {"--store e:1 " + shared, "'e:1' must be etcd:HOST:PORT,HOST:PORT,..."},
      {"--store etcd:e " + shared, "'e' is not an address"},
      {"--lease-seconds 5", "--lease-seconds has no effect without --store"},
      {"--first-worker-timeout-ms 5", "has no effect without --exit-when-done"},
      {"--store etcd:e:1", "--store needs --job, --secret-file and --port"},
      {"--store etcd:e:1 --journal x " + shared, "leave out --journal"},
      {"--store etcd:e:1 --connection-file x " + shared, "--connection-file names one server"},
      {"--store etcd:e:1 --store-key x " + shared, "--store-cert and --store-key need each other"},
      {"--store etcd:e:1 --store-user x " + shared, "--store-user and --store-password-file"},
      {"--store-ca x", "need --store"},
  };
  for (const auto& [options, expected] : mistakes) {
    start({options});
    EXPECT_EQ(server_->wait(kSoon), 2) << options;
    EXPECT_THAT(server_->output(), HasSubstr(expected)) << options;
  }
}

}  // namespace
}  // namespace elastic::testing
