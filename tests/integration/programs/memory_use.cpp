// A worker that allreduces one large tensor in every way there is, one after the other, and prints
// how much memory it had at most beyond what it began with.
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>

namespace {

/// Bytes of this process that are in memory.
std::size_t resident() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmRSS:") continue;
    std::size_t kibibytes = 0;
    status >> kibibytes;
    return kibibytes << 10;
  }
  return 0;
}

/// Reduces the tensor as `parts` named tensors.
void allreduce_named(std::span<float> tensor, std::size_t parts) {
  std::vector<elastic::Work> work;
  const std::size_t part = tensor.size() / parts;
  for (std::size_t i = 0; i < parts; ++i) {
    work.push_back(elastic::allreduce_async(std::to_string(parts) + "." + std::to_string(i),
                                            tensor.subspan(i * part, part)));
  }
  for (elastic::Work& one : work) one.wait();
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1 << 20;
  std::vector<float> tensor(bytes / sizeof(float), 1.0F);
  std::vector<float> sum(tensor.size(), 0.0F);
  const std::size_t before = resident();
  elastic::init();
  elastic::allreduce(std::span<const float>(tensor), std::span<float>(sum));
  elastic::allreduce(std::span<float>(tensor));
  for (const std::size_t parts : {1UL, 64UL, 1024UL, 1024UL}) allreduce_named(tensor, parts);
  elastic::allreduce(std::span<float>(tensor));
  std::cout << resident() - before << std::endl;
  elastic::shutdown();
}
