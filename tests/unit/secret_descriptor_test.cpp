// The inherited descriptor with the job's secret: only what is provably that is read or closed.
#include "base/secret_descriptor.hpp"

#include <fcntl.h>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace elastic {
namespace {

/// As a worker inherits it, with a number that no test has had: a process keeps what it has read by
/// the number. The caller owns it, until it is read.
int inherited(int fd) {
  static int least = 100;
  const int number = ::fcntl(fd, F_DUPFD, least);
  least = number + 1;
  return number;
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

std::string read_all(int fd) {
  std::string text(256, '\0');
  const ssize_t length = ::read(fd, text.data(), text.size());
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return text;
}

void write_text(int fd, const std::string& text) {
  ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST(SecretDescriptor, IsClosedOnceReadAndTheSecretIsKept) {
  const Secret secret = random_secret();
  const auto made = secret_descriptor(secret);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const int number = inherited(made.value().get());
  EXPECT_EQ(read_secret_fd(number).value(), secret);
  EXPECT_FALSE(is_open(number));
  EXPECT_EQ(read_secret_fd(number).value(), secret) << "by a second context";
}

TEST(SecretDescriptor, LeavesAloneWhatHasItsNumberNow) {
  const Secret secret = random_secret();
  const int number = inherited(secret_descriptor(secret).value().get());
  ASSERT_EQ(read_secret_fd(number).value(), secret);
  const UniqueFd other(::memfd_create("other", MFD_CLOEXEC));
  ASSERT_EQ(::dup3(other.get(), number, O_CLOEXEC), number);
  write_text(number, to_hex(random_secret()));
  EXPECT_EQ(read_secret_fd(number).value(), secret);
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

TEST(SecretDescriptor, OfThisProcessItselfIsNotClosed) {
  const Secret secret = random_secret();
  const auto own = secret_descriptor(secret);
  EXPECT_EQ(read_secret_fd(own.value().get()).value(), secret);
  EXPECT_TRUE(is_open(own.value().get()));
}

TEST(SecretDescriptor, IsReadByEachProcessThatInheritsIt) {
  const Secret secret = random_secret();
  const auto made = secret_descriptor(secret);
  for (int process = 0; process < 2; ++process) {
    EXPECT_EQ(read_secret_fd(inherited(made.value().get())).value(), secret);
  }
}

TEST(SecretDescriptor, CannotBeWrittenAnymore) {
  const auto made = secret_descriptor(random_secret());
  EXPECT_NE(::pwrite(made.value().get(), "x", 1, 0), 1);
  EXPECT_NE(::ftruncate(made.value().get(), 0), 0);
}

TEST(SecretDescriptor, OfAFileStaysOpenButNotForOtherPrograms) {
  const Secret secret = random_secret();
  const UniqueFd file(::memfd_create("a file", MFD_CLOEXEC));
  write_text(file.get(), to_hex(secret) + "\n");
  const UniqueFd given(inherited(file.get()));
  EXPECT_EQ(read_secret_fd(given.get()).value(), secret);
  EXPECT_EQ(::fcntl(given.get(), F_GETFD), FD_CLOEXEC);
}

TEST(SecretDescriptor, OfAPipeIsNeitherReadNorClosed) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  write_text(writer.get(), to_hex(random_secret()));
  const UniqueFd given(inherited(reader.get()));
  const Status status = read_secret_fd(given.get()).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("ELASTIC_SECRET_FILE=/dev/fd/"), std::string::npos)
      << status.message();
  EXPECT_TRUE(is_open(given.get()));
  EXPECT_EQ(read_all(given.get()).size(), 2 * Secret::kBytes);
}

TEST(SecretDescriptor, ThatIsNotOpenIsAnErrorThatSaysWhy) {
  for (const int number : {-1, 987}) {
    const Status status = read_secret_fd(number).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("there is no descriptor " + std::to_string(number)),
              std::string::npos)
        << status.message();
  }
}

}  // namespace
}  // namespace elastic
