// A worker of a job whose last rank lacks the memory for a dense tensor, when the others are in the
// allreduce of it: it leaves the job, and they go on without it.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <new>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/sparse_allreduce.hpp>
#include <sys/resource.h>

#include "integration/programs/check_program.hpp"

namespace {

using elastic::testing::fail;
using elastic::testing::must_fail;
using elastic::testing::require;

constexpr std::size_t kWidth = 15;
constexpr std::size_t kRows = std::size_t{1} << 20;  // 64 MiB with their marks
constexpr rlim_t kSpare = rlim_t{24} << 20;

/// The pages of this process, in bytes.
rlim_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

/// For as long as it lives, this process gets little more memory.
class LittleMemory {
 public:
  LittleMemory() {
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit little{address_space() + kSpare, before_.rlim_max};
    require(::setrlimit(RLIMIT_AS, &little) == 0, "the limit of the memory is not set");
  }
  ~LittleMemory() { ::setrlimit(RLIMIT_AS, &before_); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  rlimit before_{};
};

elastic::SparseRows sum(int rank) {
  const std::vector<std::int64_t> indices{rank};
  const std::vector<float> values(kWidth, 1);
  return elastic::sparse_allreduce(elastic::context(),
                                   {indices, elastic::view(std::span(values)), kWidth, kRows},
                                   elastic::ReduceOp::kSum, elastic::SparseForm::kDense);
}

void leave(int rank) {
  try {
    const LittleMemory little;
    (void)sum(rank);
    fail("there was memory");
  } catch (const std::bad_alloc&) {
    // The caller is to see that the call lacked memory.
  }
  must_fail("after it", elastic::ErrorCode::kInternal,
            {"this worker has left the job", "lack of memory"}, [] { elastic::barrier(); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: sparse_leaver LOG_FOLDER");
  try {
    elastic::init();
    const int rank = elastic::rank();
    const int size = elastic::size();
    elastic::barrier();
    if (rank == size - 1) {
      leave(rank);
      std::ofstream(std::string(argv[1]) + "/left") << "left" << std::endl;
      std::_Exit(0);
    }
    const elastic::SparseRows sums = sum(rank);
    require(sums.contributors.size() == static_cast<std::size_t>(size - 1), "the others");
    require(sums.indices.size() == static_cast<std::size_t>(size - 1) &&
                sums.indices.back() == size - 2,
            "rows of the one that has left");
    require(elastic::allreduce(std::int64_t{1}) == size - 1, "the job goes on");
    std::ofstream(std::string(argv[1]) + "/" + std::to_string(rank)) << "went on" << std::endl;
    elastic::shutdown();
    return 0;
  } catch (const std::exception& error) {
    fail(std::string("error at the caller: ") + error.what());
  }
}
