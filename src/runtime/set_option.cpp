#include "base/config/options.hpp"
#include "elastic/options.hpp"
#include "runtime/raise.hpp"

namespace elastic {

void set_option(Options& options, std::string_view name, std::string_view value) {
  runtime::raise_if(set_by_name(options, name, value));
}

}  // namespace elastic
