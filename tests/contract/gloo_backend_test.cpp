#include <gtest/gtest.h>

#include "backend_contract.hpp"
#include "collectives/backend/module.hpp"
#include "native_world.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives {
namespace {

/// A world of backends from the module, loaded as jobs do.
World gloo_world(int size, const Wiring& wiring) {
  constexpr std::uint64_t kGeneration = 7;
  const auto loaded = load_module("gloo", BACKENDS);
  if (!loaded.ok()) throw std::runtime_error(loaded.status().message());
  const auto* const module = reinterpret_cast<const BackendModule*>(loaded.value());
  World world;
  for (auto& mesh : wire(size, wiring)) {
    auto native = make_native_backend(kGeneration, mesh);
    world.backends.push_back(
        module->make({kGeneration, 0, "", std::move(mesh), std::move(native)}).value());
  }
  return world;
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  const std::vector<Wiring> wirings = all_wirings();
  for (const Wiring& wiring : {wirings.front(), wirings.back()}) {
    all.push_back({wiring.name, [wiring](int size) { return gloo_world(size, wiring); }});
    // Under sanitizers one wiring is enough: Gloo moves the data, and is not instrumented.
    if (kSlowness > 1) break;
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Gloo, AdasumContract,
                         testing::Combine(testing::Values(subjects().front()),
                                          testing::Values(1, 2, 3)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Gloo, BackendContract,
                         testing::Combine(testing::ValuesIn(subjects()),
                                          testing::Range(1, kSlowness > 1 ? 4 : 6)),
                         name_of);

}  // namespace
}  // namespace elastic::collectives
