#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ssl/context.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "rendezvous/etcd/etcd_options.hpp"

namespace elastic::etcd {

/// Requests to etcd over its JSON gateway. Belongs to the thread of its callers' io_context, and
/// outlives their calls.
class EtcdClient {
 public:
  /// kInvalidArgument: a file of certificates cannot be used.
  static Result<std::shared_ptr<EtcdClient>> create(EtcdOptions options);

  /// Asks one member after the other, from the one that answered last, and all of them again, until
  /// `until`. A request may have been carried out though no answer came, even more than once.
  /// kUnavailable, kProtocol: no member has answered as etcd does. The rest is as in read_answer.
  boost::asio::awaitable<Result<nlohmann::json>> call(std::string path, nlohmann::json request,
                                                      TimePoint until);

 private:
  explicit EtcdClient(EtcdOptions options);
  Status load_certificates();
  boost::asio::awaitable<Result<nlohmann::json>> ask(std::string member, std::string path,
                                                     std::string body, TimePoint until);
  boost::asio::awaitable<Status> authenticate(std::string member, TimePoint until);
  boost::asio::awaitable<Result<nlohmann::json>> post(std::string member, std::string path,
                                                      std::string body, TimePoint until);

  const EtcdOptions options_;
  std::unique_ptr<boost::asio::ssl::context> tls_;  ///< null: no TLS
  std::string token_;                               ///< of `options_.user`; empty: none yet
  std::size_t current_ = 0;                         ///< the member that answered last
};

}  // namespace elastic::etcd
