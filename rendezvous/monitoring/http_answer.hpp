#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::monitoring {

/// An answer without its headers of HTTP.
struct HttpAnswer {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;
};

/// Status 400.
HttpAnswer bad_request();
/// Status 403.
HttpAnswer foreign_name();

/// Whether `host`, of a request's header, is an address or localhost, or missing. A page of another
/// site reads a server at loopback by letting its own name lead there: a browser takes both for one
/// site.
bool is_local_name(const std::string& host);

/// The documents about a job, by path. A document is made when it is asked for, but at most a few
/// times a second: clients, however many, are little work for the job's server.
///
/// Belongs to the server's thread.
class Documents {
 public:
  explicit Documents(std::function<rendezvous::StatusReply()> status);

  /// \returns the document, or status 404 with a text that lists the paths, or 405 for a method that
  /// would change something.
  HttpAnswer answer(const std::string& method, const std::string& target, TimePoint now);

 private:
  struct Document {
    std::string type;
    std::function<std::string()> make;
    std::shared_ptr<const std::string> text;  ///< as it was made last; null: never
    TimePoint made;
  };
  std::map<std::string, Document> documents_;
};

}  // namespace elastic::monitoring
