// The contracts of backends, for calls of the backend nccl without devices.
#include <gtest/gtest.h>

#include "contract/native_world.hpp"
#include "nccl/rank_services.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives {
namespace {

World nccl_world(int size, const Wiring& wiring) {
  constexpr std::uint64_t kGeneration = 7;
  World world;
  for (auto& mesh : wire(size, wiring)) {
    auto native = make_native_backend(kGeneration, mesh);
    world.backends.push_back(nccl::make_nccl_backend(
        {kGeneration, 0, "", std::move(mesh), std::move(native)}, nccl::services_for_a_rank()));
  }
  return world;
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  const std::vector<Wiring> wirings = all_wirings();
  for (const Wiring& wiring : {wirings.front(), wirings.back()}) {
    all.push_back({wiring.name, [wiring](int size) { return nccl_world(size, wiring); }});
    // Under sanitizers one wiring is enough: the native backend's test uses them all.
    if (kSlowness > 1) break;
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Nccl, BackendContract,
                         ::testing::Combine(::testing::ValuesIn(subjects()),
                                            ::testing::Range(1, kSlowness > 1 ? 4 : 5)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Nccl, BackendZeroCopyContract,
                         ::testing::Combine(::testing::ValuesIn(subjects()),
                                            ::testing::Range(1, kSlowness > 1 ? 4 : 5)),
                         name_of);

}  // namespace
}  // namespace elastic::collectives
