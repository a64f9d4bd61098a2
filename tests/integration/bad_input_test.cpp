// What users, broken programs and strangers get wrong: clear errors in bounded time, and no harm to
// the job. Real processes.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "integration/trainer_job.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Ended {
  int status = -1;  ///< -1: it hung
  std::string output;
};

Ended run(const std::vector<std::string>& command, std::vector<std::string> environment = {}) {
  const ScratchFolder folder;
  environment.push_back("XDG_RUNTIME_DIR=" + folder.path().string());
  Job job(command, folder.path() / "output", environment);
  const int status = job.wait(milliseconds(40000)).value_or(-1);
  return {status, job.output()};
}

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
                      WrongCalls{"misuse", "1", "shm"}, WrongCalls{"misuse", "3", "shm"}),
    [](const auto& param) { return param.param.mode + "_" + param.param.ranks; });

// ---- strangers ----------------------------------------------------------------------------------
TEST(Joiner, WithAnotherStateIsRefusedWithTheDifference) {
  TrainerJob job({"-np", "2", "--max-np", "3", "--max-restarts", "0"}, "layout");
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  ASSERT_TRUE(job.control({"add", "1"}));
  ASSERT_TRUE(job.wait_until_ended(1)) << job.output();
  EXPECT_THAT(job.told("result")[job.pid(2)],
              AllOf(HasSubstr("weights"), HasSubstr("5000"), HasSubstr("5001")))
      << job.output();
  // A worker that fails when the job is done would be a failure of the job.
  ASSERT_TRUE(eventually(milliseconds(10000), [&] {
    return job.output().find("going on without it") != std::string::npos;
  })) << job.output();
  EXPECT_EQ(job.finish(), 0) << job.output();
}

class StrangerTest : public ::testing::Test {
 protected:
  explicit StrangerTest(const std::vector<std::string>& options = {})
      : job_(with(options), "", {"ELASTIC_LOG_LEVEL=off"}) {
    EXPECT_TRUE(job_.wait_until_trained(2)) << job_.output();
  }
  static std::vector<std::string> with(std::vector<std::string> options) {
    for (const char* one : {"-np", "2", "--max-np", "3", "--job", "mine", "--max-restarts", "0"}) {
      options.emplace_back(one);
    }
    return options;
  }

  std::string address() const {
    const std::string line = job_.address();
    return line.substr(0, line.find('\n'));
  }
  /// The training has not suffered.
  void expect_job_is_well() {
    std::string status;
    EXPECT_TRUE(job_.control({"status"}, &status));
    EXPECT_THAT(status, HasSubstr("world size 2"));
    EXPECT_EQ(job_.finish(), 0) << job_.output();
    for (const auto& [pid, told] : job_.told("result")) EXPECT_THAT(told, HasSubstr("finished"));
  }

  /// A file with the job's secret.
  std::string secret_file() const {
    const std::string record =
        read_file(job_.folder() / ("elastic-" + std::to_string(::getuid())) / "jobs" / "mine.json");
    std::smatch secret;
    EXPECT_TRUE(std::regex_search(record, secret, std::regex("[0-9a-f]{64}"))) << "no job record";
    const auto file = job_.folder() / "same";
    std::ofstream(file) << secret.str() << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_read);
    return file.string();
  }

  TrainerJob job_;
};

TEST_F(StrangerTest, WithAnotherSecretIsRefused) {
  const auto secret = job_.folder() / "other";
  write_secret(secret, 'a');
  const Ended ended = run({HELLO_ALLREDUCE}, {"ELASTIC_RENDEZVOUS=" + address(), "ELASTIC_JOB=mine",
                                              "ELASTIC_SECRET_FILE=" + secret.string()});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, HasSubstr("secret"));
  expect_job_is_well();
}

TEST_F(StrangerTest, OfAnotherJobIsRefused) {
  const Ended ended =
      run({HELLO_ALLREDUCE}, {"ELASTIC_RENDEZVOUS=" + address(), "ELASTIC_JOB=yours",
                              "ELASTIC_SECRET_FILE=" + secret_file()});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("yours"), HasSubstr("mine")));
  expect_job_is_well();
}

TEST_F(StrangerTest, ThatEncryptsIsToldThatTheJobDoesNot) {
  const Ended ended =
      run({HELLO_ALLREDUCE}, {"ELASTIC_RENDEZVOUS=" + address(), "ELASTIC_JOB=mine",
                              "ELASTIC_SECRET_FILE=" + secret_file(), "ELASTIC_ENCRYPT=1"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, HasSubstr("this side encrypts its connections, the other does not"));
  expect_job_is_well();
}

class EncryptedJobTest : public StrangerTest {
 protected:
  EncryptedJobTest() : StrangerTest({"--encrypt"}) {}
};

TEST_F(EncryptedJobTest, TellsWhoDoesNotEncryptThatItDoes) {
  const Ended ended = run({HELLO_ALLREDUCE}, {"ELASTIC_RENDEZVOUS=" + address(), "ELASTIC_JOB=mine",
                                              "ELASTIC_SECRET_FILE=" + secret_file()});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("the other side encrypts its connections"),
                                  HasSubstr("ELASTIC_ENCRYPT")));
  expect_job_is_well();
}

TEST_F(EncryptedJobTest, IsControlledFromElsewhereByWhoEncrypts) {
  std::vector<std::string> ask{ELASTICRUN, "ctl",           "--rendezvous", address(), "--job",
                               "mine",     "--secret-file", secret_file(),  "status"};
  const Ended refused = run(ask);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.output, HasSubstr("--encrypt"));
  ask.insert(ask.begin() + 2, "--encrypt");
  const Ended answered = run(ask);
  EXPECT_EQ(answered.status, 0) << answered.output;
  EXPECT_THAT(answered.output, HasSubstr("world size 2"));
  expect_job_is_well();
}

/// Inodes of the sockets of a process.
std::set<std::string> sockets_of(pid_t pid) {
  std::set<std::string> sockets;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  return sockets;
}

/// The table's lines about these sockets, as words; `at` is the column of the inode.
std::vector<std::vector<std::string>> table_of(const std::string& name, std::size_t at,
                                               const std::set<std::string>& sockets) {
  std::vector<std::vector<std::string>> found;
  std::istringstream table(read_file("/proc/net/" + name));
  for (std::string line; std::getline(table, line);) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.size() > at && sockets.contains(words[at])) found.push_back(words);
  }
  return found;
}

/// Where a process accepts connections: TCP ports, and names of sockets that are on no disk.
struct Doors {
  std::set<int> ports;
  std::set<std::string> names;
};

Doors doors_of(pid_t pid) {
  const std::set<std::string> sockets = sockets_of(pid);
  Doors doors;
  for (const auto& line : table_of("tcp", 9, sockets)) {
    const std::string& local = line[1];
    const bool listens = line[3] == "0A";
    if (listens) doors.ports.insert(std::stoi(local.substr(local.find(':') + 1), nullptr, 16));
  }
  for (const auto& line : table_of("unix", 6, sockets)) {
    const bool listens = line[3] == "00010000";
    if (listens && line.size() > 7) doors.names.insert(line[7].substr(1));
  }
  return doors;
}

int connected(int fd, const void* address, std::size_t size) {
  if (::connect(fd, static_cast<const sockaddr*>(address), static_cast<socklen_t>(size)) == 0) {
    return fd;
  }
  ::close(fd);
  return -1;
}

int connect_to(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connected(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), &address, sizeof(address));
}

int connect_to(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy_n(name.data(), std::min(name.size(), sizeof(address.sun_path) - 1),
              address.sun_path + 1);
  return connected(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), &address,
                   offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

/// Strangers at one door: some send and go, some stay and are silent.
template <typename Connect>
void throw_bytes(std::mt19937& random, std::vector<int>& open, Connect connect) {
  for (const std::size_t size : {0U, 1U, 4U, 64U, 1000U, 100000U, 100001U}) {
    const int fd = connect();
    ASSERT_GE(fd, 0);
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() & 0xffU);
    // A peer that closes early is a right answer.
    (void)::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size % 2 == 0) {
      open.push_back(fd);
    } else {
      ::close(fd);
    }
  }
}

TEST_F(StrangerTest, WithRandomBytesDoesNoHarm) {
  Doors doors = doors_of(job_.launcher().pid());
  EXPECT_EQ(doors.ports.size(), 1U) << "of the rendezvous server";
  for (const int slot : {0, 1}) {
    Doors worker = doors_of(job_.pid(slot));
    doors.ports.merge(worker.ports);
    doors.names.merge(worker.names);
  }
  EXPECT_EQ(doors.ports.size(), 3U);
  EXPECT_EQ(doors.names.size(), 2U);
  constexpr unsigned kSeed = 11;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  std::vector<int> open;
  for (const int port : doors.ports) throw_bytes(random, open, [&] { return connect_to(port); });
  for (const std::string& name : doors.names) {
    throw_bytes(random, open, [&] { return connect_to(name); });
  }
  // The job takes steps with strangers at its doors, and a worker can still join.
  ASSERT_TRUE(job_.control({"add", "1"}));
  EXPECT_TRUE(job_.wait_until_trained(3)) << job_.output();
  EXPECT_EQ(job_.finish(), 0) << job_.output();
  for (const int fd : open) ::close(fd);
}

// ---- wrong configuration
// -------------------------------------------------------------------------
TEST(Init, SaysWhereNobodyAnswered) {
  const ScratchFolder folder;
  const auto secret = folder.path() / "secret";
  write_secret(secret, 'a');
  const auto before = std::chrono::steady_clock::now();
  const Ended ended =
      run({HELLO_ALLREDUCE}, {"ELASTIC_RENDEZVOUS=127.0.0.1:1", "ELASTIC_INIT_TIMEOUT_MS=500",
                              "ELASTIC_JOB=none", "ELASTIC_SECRET_FILE=" + secret.string()});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("refused")));
  EXPECT_LT(std::chrono::steady_clock::now() - before, milliseconds(10000));
}

struct WrongVariable {
  std::string name;
  std::string value;
  std::string hint;
};

TEST(Init, NamesTheVariableThatIsWrong) {
  const std::vector<WrongVariable> wrong = {
      {"ELASTIC_TRANSPROT", "shm", "ELASTIC_TRANSPORT"},
      {"ELASTIC_TRANSPORT", "pigeon", "pigeon"},
      {"ELASTIC_TCP_STREAMS", "0", "64"},
      {"ELASTIC_TCP_STREAMS", "two", "two"},
      {"ELASTIC_TCP_CONGESTION", "pigeon", "pigeon"},
      {"ELASTIC_SHM_RING_BYTES", "1000", "65536"},
      {"ELASTIC_BUCKET_BYTES", "-1", "-1"},
      {"ELASTIC_INIT_TIMEOUT_MS", "1s", "milliseconds"},
      {"ELASTIC_BIND", "nowhere", "nowhere"},
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
                           "echo the last words; exit 9"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("| the last words"), HasSubstr("exited with code 9"),
                                  HasSubstr("2 of 2 restarts are used")));
}

}  // namespace
}  // namespace elastic::testing
