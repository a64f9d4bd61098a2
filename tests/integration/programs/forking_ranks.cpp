// Workers with children. Rank 0 makes them in every way, one after the other, in the middle of
// collectives, which have to go on as if nothing were. `orphans`: rank 1 dies and leaves some.
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <elastic/elastic.hpp>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace {

const pid_t worker = ::getpid();
std::string folder;
std::atomic<int> steps{0};
constexpr unsigned kChildSeconds = 60;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "forking_ranks: process %d: %s\n", ::getpid(), what.c_str());
  std::_Exit(3);
}

void require(bool condition, const std::string& what) {
  if (!condition) fail(what);
}

// ---- children ----------------------------------------------------------------------------------
void require_error(const std::string& call, const std::function<void()>& make) {
  try {
    make();
  } catch (const elastic::Error& error) {
    require(error.code() == elastic::ErrorCode::kNotInitialized &&
                std::string(error.what()).find("forked child") != std::string::npos,
            call + ": " + error.what());
    return;
  }
  fail(call + " succeeded in a child");
}

/// None of the worker's sockets: its peers would not hear of its death.
void require_no_sockets() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string what = std::filesystem::read_symlink(entry.path(), gone).string();
    require(!what.starts_with("socket:"), "a child has a socket of the worker");
  }
}

void call_everything(const elastic::Work& work, elastic::Allocation& memory) {
  std::vector<float> tensor(10);
  elastic::State state;
  require_error("rank", [] { (void)elastic::rank(); });
  require_error("size", [] { (void)elastic::size(); });
  require_error("allreduce", [&] { elastic::allreduce(std::span(tensor)); });
  require_error("allreduce_async", [&] { (void)elastic::allreduce_async("x", std::span(tensor)); });
  require_error("barrier", [] { elastic::barrier(); });
  require_error("allocate", [] { (void)elastic::allocate(100); });
  require_error("wait", [&] { work.wait(); });
  require_error("run", [&] { elastic::run(state, [] {}); });
  require_error("init", [] { elastic::init(); });
  require_error("Context", [] { const elastic::Context another{elastic::Options{}}; });
  require_error("Context with a secret's file", [] {
    elastic::Options options;
    options.secret_file = "/dev/null";
    const elastic::Context another{options};
  });
  require_error("shutdown", [] { elastic::shutdown(); });
  require(!work.ready(), "an operation completes in a child");
  memory = elastic::Allocation();
  require_no_sockets();
}

/// Waits for the child, which must end with 0.
void await(pid_t child, const std::string& name) {
  int status = -1;
  require(child > 0 && ::waitpid(child, &status, 0) == child, name + ": no child");
  require(status == 0, name + ": the child ended with status " + std::to_string(status));
}

void in_child(const std::string& name, const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kChildSeconds);
    work();
    fail(name + ": the child goes on");
  }
  await(child, name);
}

/// Acts as a data loader: computes while its parent makes further steps, and ends as a program
/// does.
void work_for_a_while() {
  std::array<int, 2> go{};
  require(::pipe2(go.data(), O_CLOEXEC) == 0, "no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kChildSeconds);
    std::vector<double> batch(100000, 1.5);
    char byte = 0;
    const bool told = ::read(go[0], &byte, 1) == 1;
    for (double& sample : batch) sample *= 2;
    std::exit(told && batch.back() == 3.0 ? 0 : 1);
  }
  for (const int last = steps + 20; steps < last;) std::this_thread::yield();
  require(::write(go[1], "x", 1) == 1, "no word to the child");
  await(child, "data loader");
  ::close(go[0]);
  ::close(go[1]);
}

/// The descriptors of a program that this process starts: 0, 1, 2, and the folder that it lists.
void require_three_descriptors() {
  FILE* const list = ::popen("ls -l /proc/self/fd", "r");
  require(list != nullptr, "popen failed");
  std::array<char, 1000> line{};
  int standard = 0;
  while (std::fgets(line.data(), line.size(), list) != nullptr) {
    const std::string text = line.data();
    const auto arrow = text.find(" -> ");
    if (arrow == std::string::npos) continue;
    const int number = std::stoi(text.substr(text.rfind(' ', arrow - 1)));
    standard += number <= 2 ? 1 : 0;
    require(number <= 2 || text.find("/fd") != std::string::npos,
            "a program that the worker started has inherited " + text);
  }
  require(::pclose(list) == 0 && standard == 3, "no list of descriptors");
}

void make_children() {
  static std::vector<float> tensor(10, 1);
  // Rank 1 submits it last: it is under way as long as there are children.
  const elastic::Work work = elastic::allreduce_async("late", std::span(tensor));
  elastic::Allocation memory = elastic::allocate(std::size_t{1} << 16);
  for (std::uint8_t& byte : memory.as<std::uint8_t>()) byte = 7;
  for (int round = 0; round < 3; ++round) {
    in_child("exit", [] { std::exit(0); });
    in_child("_exit", [] { ::_exit(0); });
    in_child("calls", [&] {
      call_everything(work, memory);
      std::exit(0);
    });
  }
  const auto raw = static_cast<pid_t>(::syscall(SYS_fork));  // no handlers of pthread_atfork
  if (raw == 0) ::_exit(work.ready() ? 1 : 0);
  await(raw, "raw fork");
  require(std::system("exit 0") == 0, "system failed");
  require_three_descriptors();
  work_for_a_while();
  for (const std::uint8_t byte : memory.as<std::uint8_t>()) {
    require(byte == 7, "a child has given the worker's memory back");
  }
}

// ---- the training ------------------------------------------------------------------------------
/// Sums, until a rank says that it is done: in two operations of which the second is small.
bool step(bool done) {
  std::vector<float> tensor(20000, 1);
  const elastic::Contributors contributors = elastic::allreduce(std::span(tensor));
  require(contributors.size() == 2, "a worker has lost its job");
  for (const float value : tensor) require(value == 2, "a wrong sum");
  float all = done ? 1 : 0;
  elastic::allreduce(std::span(&all, 1));
  ++steps;
  return all > 0;
}

/// A child that leaves `run` in its own way: the parent's job must not notice.
void fork_in_body(const std::string& how, elastic::State& state) {
  const pid_t child = ::fork();
  if (child != 0) return await(child, how);
  ::alarm(kChildSeconds);
  if (how == "exception") throw std::runtime_error("of a child");
  if (how == "commit") state.commit();
}

void train() {
  elastic::State state;
  std::vector<float> weights(10);
  state.add("weights", weights);
  try {
    elastic::run(state, [&] {
      const bool forks = elastic::rank() == 0;
      std::atomic<bool> done{!forks};
      std::thread children;
      if (forks) {
        children = std::thread([&] {
          make_children();
          done = true;
        });
      }
      while (!step(forks && done)) {
      }
      if (children.joinable()) children.join();
      std::vector<float> tensor(10, 1);
      if (!forks) elastic::allreduce_async("late", std::span(tensor)).wait();
      for (const char* how : {"exception", "return", "commit"}) {
        if (forks) fork_in_body(how, state);
        if (::getpid() != worker) return;
        step(false);
        state.commit();
      }
    });
    require(::getpid() == worker, "run has returned in a child");
  } catch (const std::exception& error) {
    if (::getpid() == worker) fail(error.what());
    std::exit(0);  // as from main
  }
  require(elastic::generation() == 1, "the view has changed");
}

/// Rank 1 dies while two of its children live, one with a program of its own, both detached.
void leave_orphans() {
  const std::string shell = "setsid sleep " + std::to_string(kChildSeconds) +
                            " >/dev/null 2>&1 </dev/null & echo $! >> " + folder + "/orphans";
  for (int i = 0; elastic::size() == 2; ++i) {
    std::vector<float> tensor(1000, 1);
    elastic::allreduce(std::span(tensor));
    if (i < 10 || elastic::rank() != 1 || elastic::size() != 2) continue;
    require(std::system(shell.c_str()) == 0, "system failed");
    const pid_t child = ::fork();
    if (child == 0) {
      ::setsid();
      const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
      for (int fd = 0; fd <= 2; ++fd) ::dup2(null, fd);
      ::sleep(kChildSeconds);
      ::_exit(0);
    }
    std::ofstream(folder + "/orphans", std::ios::app) << child << "\n";
    ::kill(worker, SIGKILL);
  }
  std::printf("alone\n");
}

}  // namespace

/// LeakSanitizer asks this at the end of a process. A child has none of the worker's other threads,
/// whose stacks lead to what they own.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() {
  return ::getpid() != worker ? 1 : 0;
}

int main(int argc, char** argv) {
  if (argc != 3) fail("usage: forking_ranks train|orphans FOLDER");
  folder = argv[2];
  elastic::init();
  if (std::string(argv[1]) == "orphans") {
    leave_orphans();
  } else {
    train();
  }
  elastic::shutdown();
  return 0;
}
