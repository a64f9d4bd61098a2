// A worker of which, in step 3, rank 1 has a NaN in the second of two gradients, and in step 5 all
// have numbers whose sum overflows. In step 7 rank 1 has a NaN again, and the sum fails; in step 8
// rank 2 has one. Tells what came of each step in a file <FOLDER>/gradients.<slot>. With `exit`
// each worker ends with the first error, as programs do.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

namespace {

constexpr int kSteps = 8;

/// Whether the step counts.
bool step(int number, std::vector<float>& first, std::vector<float>& second,
          elastic::FiniteCheck& check) {
  first.assign(first.size(), 1);
  second.assign(second.size(), 2);
  const int culprit = number == 3 || number == 7 ? 1 : number == 8 ? 2 : -1;
  if (elastic::rank() == culprit) second[7] = std::numeric_limits<float>::quiet_NaN();
  if (number == 5) first[2] = std::numeric_limits<float>::max();
  check.begin_step();
  check.before_sum();
  elastic::allreduce(std::span(first).first(number == 7 && elastic::rank() == 0 ? 4 : 5));
  elastic::allreduce(std::span(second));
  return check.after_sum();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: bad_gradients FOLDER [exit]\n");
    return 2;
  }
  elastic::init();
  std::ofstream file(std::string(argv[1]) + "/gradients." + std::getenv("ELASTIC_SLOT"));
  std::vector<float> first(5);
  std::vector<float> second(3000);
  elastic::FiniteCheck check({{"first", elastic::view(std::span<const float>(first))},
                              {"second", elastic::view(std::span<const float>(second))}});
  for (int number = 1; number <= kSteps; ++number) {
    try {
      const bool used = step(number, first, second, check);
      file << number << (used ? " used\n" : " skipped\n");
    } catch (const elastic::Error& error) {
      const bool expected = error.code() == elastic::ErrorCode::kNotFinite;
      file << number;
      if (expected) {
        file << " not finite " << error.peer() << ' ' << error.what() << '\n';
      } else {
        file << (error.code() == elastic::ErrorCode::kMismatch ? " failed\n" : " other\n");
      }
      if (argc == 3) {
        file.close();
        std::_Exit(1);
      }
    }
  }
  elastic::shutdown();
  return 0;
}
