#pragma once

#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "base/status.hpp"
#include "collectives/transport/linker_options.hpp"

namespace elastic::transport {

/// Opens `acceptor` as the options say: on which addresses, and on which port.
/// \returns "address:port" for all that others may connect to, the preferred first.
/// kInvalidArgument: the options name nothing on this host. kUnavailable: it cannot be opened, or
/// all ports are in use.
Result<std::vector<std::string>> open_data_listener(boost::asio::ip::tcp::acceptor& acceptor,
                                                    const LinkerOptions& options);

}  // namespace elastic::transport
