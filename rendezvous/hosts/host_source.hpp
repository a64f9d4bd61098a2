#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/status.hpp"
#include "rendezvous/hosts/host_list.hpp"

namespace elastic::hosts {

/// Where the list of hosts comes from. A file is read every second, and a script is run a second
/// after it has ended, with a time limit.
///
/// Lives on the io_context, on which the handler is called, not after the end of this object.
class HostSource {
 public:
  struct Place {
    std::string file;    ///< or
    std::string script;  ///< a command for sh that prints one host per line
    int usual_slots = 1;
    std::vector<std::string> environment;  ///< of the script, as "NAME=value"
    int guardian_pipe = -1;
  };
  /// A list that differs from the one before, or an error that does: the list before holds then.
  using Handler = std::function<void(const Result<HostList>&)>;

  HostSource(boost::asio::io_context& io, Place place, Handler handler);
  ~HostSource();
  HostSource(const HostSource&) = delete;
  HostSource& operator=(const HostSource&) = delete;

 private:
  class Watch;
  std::shared_ptr<Watch> watch_;
};

}  // namespace elastic::hosts
