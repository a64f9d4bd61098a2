// Workers that, after 20 unnamed calls, do not come to the next one together.
//
// stalled_ranks late PIPE   the last rank enters an allreduce once the test has opened the named
//                           pipe, and another one when the test has opened it again
// stalled_ranks named PIPE  the same with an allreduce of the tensor 'grad'
// stalled_ranks away PIPE   the last rank enters an allreduce once the test has opened the named
//                           pipe; then all of them call allreduce until it fails
// stalled_ranks mixed       rank 0 is in an allreduce of the tensor 'grad', the others in an
//                           unnamed one: they wait for ever
// stalled_ranks load PIPE   the last rank loads an object of the state once the test has opened the
//                           named pipe
// stalled_ranks group PIPE  as named, with an alltoall 'x' of every second rank; rank 1 waits for
//                           the named pipe PIPE_of_rank_1 meanwhile
#include <array>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/group.hpp>

namespace {

std::array<float, 10> values{};

void unnamed() {
  elastic::allreduce(std::span(values));
}
void named() {
  elastic::allreduce_async("grad", std::span(values)).wait();
}

void exchange(elastic::Group& group) {
  std::array<float, 4> blocks{};
  (void)group.alltoall_async("x", std::span<const float>(blocks)).wait();
}

/// Returns when the test has opened the other end, and closed it.
void wait_for(const char* pipe) {
  std::ifstream opened(pipe);
  opened.get();
}

/// An object of which the last rank's copy differs, and takes its time to load.
struct Object {
  const char* pipe;
  bool is_last = elastic::rank() + 1 == elastic::size();
  std::vector<std::byte> save() const { return {std::byte{is_last}}; }
  void load(std::span<const std::byte> /*from*/) {
    if (std::exchange(is_last, false)) wait_for(pipe);
  }
};

void load(const char* pipe) {
  Object object{pipe};
  elastic::State state;
  state.add("object", object);
  elastic::run(state, [&] {
    while (state.commits() < 20) {
      unnamed();
      state.commit();
    }
  });
  elastic::shutdown();
}

void run(const std::string& mode, const char* pipe) {
  elastic::init();
  if (mode == "load") return load(pipe);
  for (int i = 0; i < 20; ++i) unnamed();
  const bool last = elastic::rank() + 1 == elastic::size();
  if (mode == "group" && elastic::rank() == 1) {
    wait_for((std::string(pipe) + "_of_rank_1").c_str());
    unnamed();
  } else if (mode == "group") {
    if (last) wait_for(pipe);
    exchange(elastic::context().group(elastic::GroupRule::every(2)));
    unnamed();
  } else if (mode == "mixed") {
    elastic::rank() == 0 ? named() : unnamed();
  } else {
    if (last) wait_for(pipe);
    mode == "named" ? named() : unnamed();
    while (mode == "away") unnamed();
    if (last) wait_for(pipe);
    unnamed();
  }
  elastic::shutdown();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  try {
    run(argv[1], argc > 2 ? argv[2] : "");
  } catch (const elastic::Error& error) {
    std::printf("%s: %s\n", error.code() == elastic::ErrorCode::kTimeout ? "timed out" : "failed",
                error.what());
    return 5;
  }
  std::printf("complete\n");
  return 0;
}
