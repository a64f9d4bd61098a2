// Strangers at a job's ports get clear errors, and do the job no harm. Real processes.
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

#include "integration/ended.hpp"
#include "integration/trainer_job.hpp"
#include "rendezvous/launcher/job_file.hpp"

namespace elastic::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
    const std::string folder = job_.folder() / ("elastic-" + std::to_string(::getuid()));
    const std::string record = read_file(launcher::jobs_folder(folder) + "/mine.json");
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

/// The addresses on which a process accepts connections: TCP ports, and abstract socket names.
struct Doors {
  std::set<int> ports;
  std::set<std::string> names;
};

Doors doors_seen(pid_t pid) {
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

struct Expected {
  std::size_t ports = 0;
  std::size_t names = 0;
};

/// The kernel's tables have the whole machine's sockets, and leave some out where others come and
/// go while they are read: looks again for what is missing.
Doors doors_of(pid_t pid, const Expected& expected) {
  Doors doors;
  eventually(std::chrono::milliseconds(20000), [&] {
    doors = doors_seen(pid);
    return doors.ports.size() >= expected.ports && doors.names.size() >= expected.names;
  });
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
  Doors doors = doors_of(job_.launcher().pid(), {.ports = 1});
  EXPECT_EQ(doors.ports.size(), 1U) << "of the rendezvous server";
  for (const int slot : {0, 1}) {
    Doors worker = doors_of(job_.pid(slot), {.ports = 1, .names = 1});
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

}  // namespace
}  // namespace elastic::testing
