#include "collectives/backend/module.hpp"

#include <utility>

#include "collectives/backend/gloo/gloo_backend.hpp"
#include "collectives/backend/gloo/gloo_version.hpp"

namespace {

using namespace elastic;
using namespace elastic::collectives;

Status start(const ModuleStart&) {
  return {};
}

Result<std::unique_ptr<Backend>> make(ModuleView view) {
  return make_gloo_backend(std::move(view));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): a symbol's name
extern "C" [[gnu::visibility("default")]] const BackendModule elastic_module = {
    {ELASTIC_MODULE_ABI, gloo_library},
    /*fixed_membership=*/false,
    /*works_on_devices=*/false,
    /*uses_all_links=*/true,
    /*abort_waits_for_peers=*/false,
    start,
    make,
    /*end=*/nullptr};
