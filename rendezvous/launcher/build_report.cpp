#include "rendezvous/launcher/build_report.hpp"

#include "rendezvous/protocol/messages.hpp"

namespace elastic::launcher {

std::string version_line() {
  return std::string("elasticrun ") + ELASTIC_VERSION + "\n";
}

std::string build_report() {
  return version_line() + "protocol  " + std::to_string(rendezvous::kProtocolVersion) +
         "\n"
         "backends\n"
         "  native  yes\n"
         "  nccl    not built\n"
         "  gloo    not built\n"
         "  mpi     not built\n"
         "transports\n"
         "  shared memory  yes\n"
         "  tcp            yes\n"
         "  in-process     yes\n";
}

}  // namespace elastic::launcher
