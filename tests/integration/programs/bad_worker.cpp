// A worker that ends as workers should not. The mode says how:
//   layout   the ranks' states have different sizes
//   order    the ranks' states have the same entries in another order; tells where it trains
//   escape   like layout, with a terminal's control characters in the name of the state's entry
//   object   a part of the state is another on every rank, whatever it loads
//   load     another part of the state refuses what it is given, on rank 1
//   joiner   the same, in the second life of a worker; rank 1 is killed in its first. The training
//            goes on until a third life takes part
//   option   an option that code gives is wrong
//   exit     rank 1 ends with code 0 in the middle of the training, without shutdown
//   all_exit so do all ranks
//   throws   an exception leaves the training of rank 1, which catches it and calls shutdown
//   all      the same on every rank
//   uncaught the same, and none of them catches it
//   differs  rank 1 calls another collective than rank 0, and gives up; rank 0 goes on
//   killed   a collective without `run`; rank 1 is killed in its first life
//   endless  collectives without `run`, for ever; the file DIR/step.RANK says that they go on
//   early    rank 1 returns from the training after 5 steps, and calls shutdown
//   early_without_run  the same, with collectives without `run`
//   in_call  main returns while two other threads call, the one unnamed, the other by names
//   stranger rank 1 ends with code 0 before it calls init
//   print    prints lines that it does not flush, and is killed
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <elastic/elastic.hpp>

namespace {

constexpr int kSteps = 20;

/// Differs between ranks, and stays so.
struct RankObject {
  std::vector<std::byte> save() const { return {static_cast<std::byte>(elastic::rank())}; }
  void load(std::span<const std::byte> /*bytes*/) {}
};

int life() {
  return std::stoi(std::getenv("ELASTIC_RESTART"));
}

/// Cannot take what it is given, in the mode's cases.
struct Refusing {
  explicit Refusing(std::string its) : mode(std::move(its)) {}
  std::vector<std::byte> save() const { return std::vector<std::byte>(8); }
  void load(std::span<const std::byte> /*bytes*/) const {
    const bool refuses =
        (mode == "load" && elastic::rank() == 1) || (mode == "joiner" && life() == 1);
    if (refuses) throw std::runtime_error("no such tokenizer");
  }
  std::string mode;
};

void sum() {
  std::vector<int> ones(1000, 1);
  elastic::allreduce(std::span<int>(ones));
}

/// The ranks call different collectives. Rank 0 takes no notice of the error.
void differ() {
  try {
    if (elastic::rank() == 0) return sum();
    elastic::barrier();
  } catch (const elastic::Error& error) {
    if (elastic::rank() != 0 || error.code() != elastic::ErrorCode::kMismatch) throw;
  }
}

/// Tells the exceptions of the ranks apart where all throw.
std::string own_part(const std::string& mode) {
  return mode == "throws" ? "" : " of worker " + std::string(std::getenv("RANK"));
}

void train(elastic::State& state, const std::string& mode) {
  elastic::run(state, [&] {
    if (mode == "order") std::puts("trains");
    while (state.commits() < kSteps) {
      const bool early = state.commits() == 5 && elastic::size() == 2;
      if (early && mode == "differs") differ();
      sum();
      if (early &&
          (mode == "all" || mode == "uncaught" || (mode == "throws" && elastic::rank() == 1))) {
        throw std::runtime_error("no such\nsample" + own_part(mode));
      }
      if (mode == "early" && state.commits() == 5 && elastic::rank() == 1) return;
      if (mode == "all_exit" && state.commits() == 5) std::exit(0);
      if (mode == "exit" && elastic::size() == 2 && elastic::rank() == 1) std::exit(0);
      state.commit();
    }
  });
}

void train_until_a_third_life(elastic::State& state) {
  elastic::run(state, [&] {
    for (bool again = true; again;) {
      if (life() == 0 && elastic::rank() == 1) ::kill(::getpid(), SIGKILL);
      std::vector<int> latest{life()};
      elastic::allreduce(std::span<int>(latest), elastic::ReduceOp::kMax);
      again = latest[0] < 2;
      state.commit();
    }
  });
}

void train_with_state(const std::string& mode) {
  std::vector<float> weights(
      10 + (mode == "layout" || mode == "escape" ? static_cast<std::size_t>(elastic::rank()) : 0));
  RankObject object;
  elastic::State state;
  if (mode == "load" || mode == "joiner") weights[0] = static_cast<float>(elastic::rank());
  std::vector<float> biases(10);
  if (mode == "order" && elastic::rank() == 1) state.add("biases", biases);
  state.add(mode == "escape" ? "we\x1b[31m\nights" : "weights", weights);
  if (mode == "order" && elastic::rank() == 0) state.add("biases", biases);
  if (mode == "object") state.add("object", object);
  Refusing refusing(mode);
  if (mode == "load" || mode == "joiner") state.add("tokenizer", refusing);
  if (mode == "joiner") return train_until_a_third_life(state);
  const bool catches = mode == "throws" || mode == "all" || mode == "differs";
  try {
    train(state, mode);
  } catch (const std::exception&) {
    if (!catches) throw;
  }
}

void call_without_run(const std::string& mode, const std::string& folder) {
  for (int step = 0; mode == "endless" || step < kSteps; ++step) {
    if (mode == "killed" && step == 3 && elastic::rank() == 1 && life() == 0) {
      ::kill(::getpid(), SIGKILL);
    }
    if (mode == "early_without_run" && step == 3 && elastic::rank() == 1) return;
    sum();
    if (step == 3 && !folder.empty())
      std::ofstream(folder + "/step." + std::to_string(elastic::rank())) << step;
  }
}

/// Returns once both threads have called. Their errors come as the process exits.
void leave_threads_in_calls() {
  static std::atomic<int> calling{0};
  const auto call = [](const std::string& name) {
    try {
      std::vector<float> tensor(100);
      for (int calls = 0;; ++calls) {
        if (name.empty()) {
          (void)elastic::allreduce(tensor);
        } else {
          elastic::allreduce_async(name, tensor).wait();
        }
        if (calls == 3) ++calling;
      }
    } catch (const elastic::Error&) {
      for (;;) ::pause();
    }
  };
  for (const char* name : {"", "tensor"}) std::thread(call, name).detach();
  while (calling < 2) std::this_thread::yield();
}

/// More than any buffer on the way holds, without a line's end at the end.
void print() {
  std::printf("\x1b[1mtab\tand\rreturn\x01\xff\n");
  for (int line = 0; line < 20000; ++line) std::printf("line %d of a worker\n", line);
  ::kill(::getpid(), SIGKILL);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const std::string folder = argc > 2 ? argv[2] : "";
  if (mode == "stranger" && std::string(std::getenv("RANK")) == "1") return 0;
  elastic::Options options;
  if (mode == "option") options.transport = static_cast<elastic::Transport>(77);
  elastic::init(options);
  if (mode == "print") print();
  if (mode == "in_call") {
    leave_threads_in_calls();
    return 0;
  }
  if (mode == "killed" || mode == "endless" || mode == "early_without_run") {
    call_without_run(mode, folder);
  } else {
    train_with_state(mode);
  }
  elastic::shutdown();
  return 0;
}
