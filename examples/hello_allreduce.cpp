// Adds a vector up over all workers. Start it with: elasticrun -np 4 ./hello_allreduce
#include <cstdio>
#include <vector>

#include <elastic/elastic.hpp>

int main() {
  try {
    elastic::init();
    const int rank = elastic::rank();
    std::vector<float> values(1000, static_cast<float>(rank + 1));
    const elastic::Contributors contributors = elastic::allreduce(std::span(values));
    std::printf("rank %d: the sum over %zu workers is %g\n", rank, contributors.size(),
                static_cast<double>(values[0]));
    elastic::shutdown();
    return 0;
  } catch (const elastic::Error& error) {
    std::fprintf(stderr, "hello_allreduce: %s\n", error.what());
    return 1;
  }
}
