// The root of a group's call dies: rank 1 has started the call before, and rank 2 calls after it
// knows. Rank 1 names the root as a worker, as its call may begin after the death. Both write to
// FOLDER/<rank> how the call ended. usage: group_root_check FOLDER broadcast|reduce|gather|scatter,
// with three workers
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <signal.h>
#include <span>
#include <string>
#include <type_traits>
#include <unistd.h>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/group.hpp>

/// The id of a worker, made an int, would be taken for a rank.
static_assert(!std::is_constructible_v<elastic::Root, elastic::WorkerId>);

namespace {

using Numbers = std::vector<std::int64_t>;

/// Starts the call. The memory lasts as long as the process.
elastic::Work start(elastic::Group& group, const std::string& kind, const elastic::Root& root) {
  static Numbers data(6);
  static const Numbers given(6, 1);
  const elastic::TensorView out = elastic::view(std::span(data));
  const elastic::ConstTensorView in = elastic::view(std::span(given));
  if (kind == "broadcast") return group.broadcast_async(out, root);
  if (kind == "reduce") return group.reduce_async(in, out, root);
  if (kind == "gather") return group.gather_async(in, root, [](auto, auto) {});
  return group.scatter_async({in, {}, {}}, root, [](auto, auto) {});
}

std::string ending_of(const elastic::Work& work) {
  try {
    work.wait();
    return "done";
  } catch (const elastic::Error& error) {
    return error.code() == elastic::ErrorCode::kRootLost ? "lost" : error.what();
  }
}

}  // namespace

int main(int /*argc*/, char** argv) {
  elastic::init();
  elastic::Context& job = elastic::context();
  elastic::Group& group = job.group(elastic::GroupRule::ranks({0, 1, 2}));
  const int rank = job.rank();
  group.barrier();
  const std::string kind = argv[2];
  const auto first = elastic::Root::worker(job.members().workers().front());
  elastic::Work work;
  if (rank == 1) work = start(group, kind, first);
  job.barrier();
  if (rank == 0) ::kill(::getpid(), SIGKILL);
  // Polls, because no event tells of a new view.
  while (rank == 2 && job.members().size() == 3) ::usleep(1000);
  if (rank == 2) work = start(group, kind, 0);
  std::ofstream(std::string(argv[1]) + "/" + std::to_string(rank)) << ending_of(work);
  job.barrier();
  elastic::shutdown();
  return 0;
}
