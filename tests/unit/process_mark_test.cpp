#include "base/process_mark.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/unique_fd.hpp"

namespace elastic {
namespace {

/// Whether a child of fork(2) has the descriptor.
bool child_has(int fd) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::fcntl(fd, F_GETFD) >= 0 ? 1 : 0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WEXITSTATUS(status) == 1;
}

/// Large ones are those of a process that has many connections, files or GPUs. The greatest are
/// tried where the limit of open files allows it.
TEST(CloseInChildren, TakesSocketsOfEveryNumber) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit most{before.rlim_max, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &most), 0);
  ASSERT_GT(most.rlim_cur, 4096U) << "raise the limit of open files (ulimit -Hn)";
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (const rlim_t number : {300U, 4095U, 4096U, 10000U, 70000U, 200000U}) {
    if (number >= most.rlim_cur) break;
    const UniqueFd fd(::dup3(socket.get(), static_cast<int>(number), O_CLOEXEC));
    ASSERT_TRUE(fd) << number;
    EXPECT_TRUE(child_has(fd.get()));
    close_in_children(fd.get());
    EXPECT_FALSE(child_has(fd.get())) << number;
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace elastic
