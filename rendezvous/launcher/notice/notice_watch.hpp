#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/status.hpp"
#include "rendezvous/launcher/notice/notice.hpp"

namespace elastic::notice {

/// Asks a source again and again whether this machine is to end.
///
/// Lives on the io_context, on which handlers are called, not after the end of this object.
class NoticeWatch {
 public:
  struct Handlers {
    std::function<void(Notice)> on_notice;     ///< once
    std::function<void(std::string)> on_hint;  ///< once: EC2 recommends to move to another machine
    /// The source cannot be asked, or its answer cannot be read; once for each text. It is asked
    /// again.
    std::function<void(Status)> on_error;
  };

  /// `environment` and `guardian_pipe` are for a command.
  NoticeWatch(boost::asio::io_context& io, NoticeSource source,
              std::vector<std::string> environment, int guardian_pipe, Handlers handlers);
  ~NoticeWatch();
  NoticeWatch(const NoticeWatch&) = delete;
  NoticeWatch& operator=(const NoticeWatch&) = delete;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace elastic::notice
