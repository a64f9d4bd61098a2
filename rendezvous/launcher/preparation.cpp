#include "rendezvous/launcher/preparation.hpp"

#include <utility>

#include "rendezvous/launcher/child_process.hpp"

namespace elastic::launcher {

Status Preparation::start(boost::asio::io_context& io, const std::string& command,
                          std::vector<std::string> environment, int guardian_pipe) {
  auto child = start_child({.path = "/bin/sh",
                            .arguments = {"sh", "-c", command},
                            .environment = std::move(environment),
                            .guardian_pipe = guardian_pipe});
  if (!child.ok()) return child.status();
  process_ = std::make_shared<WorkerProcess>(io, std::move(child).value(), guardian_pipe, output_);
  process_->pump();
  return {};
}

}  // namespace elastic::launcher
