// A worker that needs the job's secret twice. The mode says for what:
//   second    a second context, when the number of the secret's descriptor means another file
//   exec      the program that the worker executes, in the mode "executed"
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include <elastic/elastic.hpp>

namespace {

/// Makes the number mean a file of this program.
int take_number_of_secret() {
  const int number = std::atoi(std::getenv("ELASTIC_SECRET_FD"));
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  return ::dup2(null, number);
}

void make_second() {
  const elastic::Context first{elastic::Options{}};
  const int number = take_number_of_secret();
  const elastic::Context second{elastic::Options{}};
  std::printf("a second context; the file is %s\n",
              ::fcntl(number, F_GETFD) >= 0 ? "open" : "closed");
}

int execute(char* program) {
  const elastic::Context first{elastic::Options{}};
  std::string mode = "executed";
  char* const arguments[] = {program, mode.data(), nullptr};
  return ::execv(program, arguments);
}

void join_when_executed() {
  try {
    const elastic::Context context{elastic::Options{}};
    std::puts("joined");
  } catch (const elastic::Error& error) {
    std::printf("error: %s\n", error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "exec") return execute(argv[0]);
  if (mode == "executed") join_when_executed();
  if (mode == "second") make_second();
  return 0;
}
