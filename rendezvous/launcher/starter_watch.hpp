#pragma once

#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace elastic::launcher {

/// Watches for the end of the process that started this one, which holds the other end of stdin:
/// it closes however that process ends, and where ssh in between does.
class StarterWatch {
 public:
  /// `on_gone` is called once, on `io`.
  StarterWatch(boost::asio::io_context& io, std::function<void()> on_gone);

 private:
  void wait();

  boost::asio::posix::stream_descriptor input_;
  std::function<void()> on_gone_;
};

}  // namespace elastic::launcher
