# Writes the file PAGE as the C++ source SOURCE: a raw string, whose end the page must not contain.
file(READ ${PAGE} page)
if(page MATCHES "\\)elastic_page\"")
  message(FATAL_ERROR "${PAGE} has the text that ends a raw string")
endif()
file(CONFIGURE OUTPUT ${SOURCE} @ONLY CONTENT [[// Made of status_page.html by embed_page.cmake.
#include "rendezvous/monitoring/status_page.hpp"

namespace elastic::monitoring {

const std::string_view kStatusPage = R"elastic_page(@page@)elastic_page";

}  // namespace elastic::monitoring
]])
