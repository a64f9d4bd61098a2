#include "examples/digits/feed.hpp"

#include <array>
#include <chrono>
#include <numeric>

#include <elastic/sampler.hpp>
#include <nlohmann/json.hpp>

namespace digits {

std::string measure_feed(const Dataset& data, std::uint64_t epochs, std::size_t batch,
                         std::uint64_t seed) {
  constexpr elastic::WorkerId kSelf = 1;
  const std::array<elastic::WorkerId, 1> alone{kSelf};
  elastic::Sampler sampler(data.training.size(), seed);
  sampler.set_members(alone, kSelf);
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t wanted = data.training.size() * epochs;
  std::size_t samples = 0;
  double pixels = 0;  // their sum, so that they are read
  while (samples < wanted) {
    for (const std::size_t index : sampler.next(batch)) {
      const auto& image = data.training[index].pixels;
      pixels = std::accumulate(image.begin(), image.end(), pixels);
      ++samples;
    }
    sampler.commit(alone);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const nlohmann::ordered_json result = {
      {"samples", samples},
      {"seconds", seconds.count()},
      {"samples_per_second", static_cast<double>(samples) / seconds.count()},
      {"mean_pixel_sum", pixels / static_cast<double>(samples)},
  };
  return result.dump();
}

}  // namespace digits
