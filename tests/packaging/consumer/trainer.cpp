#include <cstdio>
#include <span>
#include <vector>

#include <elastic/elastic.hpp>

int main() {
  elastic::init();
  const float mine = static_cast<float>(elastic::rank() + 1);
  std::vector<float> data = {mine, 10 * mine, 100 * mine};
  elastic::allreduce(std::span(data));
  std::printf("rank %d of %d: %g %g %g\n", elastic::rank(), elastic::size(), data[0], data[1],
              data[2]);
  elastic::shutdown();
}
