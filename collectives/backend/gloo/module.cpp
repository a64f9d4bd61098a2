#include "collectives/backend/module.hpp"

#include <string>
#include <utility>

#include <gloo/config.h>

#include "collectives/backend/gloo/gloo_backend.hpp"

namespace {

using namespace elastic;
using namespace elastic::collectives;

std::string describe_gloo() {
  return "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) +
         "." + std::to_string(GLOO_VERSION_PATCH);
}

Status start(const ModuleStart&) {
  return {};
}

Result<std::unique_ptr<Backend>> make(ModuleView view) {
  return make_gloo_backend(std::move(view));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): a symbol's name
extern "C" [[gnu::visibility("default")]] const BackendModule elastic_module = {
    {ELASTIC_MODULE_ABI, describe_gloo}, /*fixed_membership=*/false, start, make};
