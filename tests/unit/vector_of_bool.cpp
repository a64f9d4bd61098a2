// Must not compile, and say what to take instead.
#include <vector>

#include <elastic/elastic.hpp>

int main() {
  std::vector<bool> flags(3);
  elastic::allreduce(flags);
  elastic::State state;
  state.add("flags", flags);
}
