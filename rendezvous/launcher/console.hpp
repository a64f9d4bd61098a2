#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "rendezvous/launcher/output_writer.hpp"

namespace elastic::launcher {

/// The stdout and stderr of elasticrun: its own lines, and those of its children.
///
/// Owned by the launcher's thread, on which `io` runs.
class Console {
 public:
  /// `host`: of this elasticrun, where the lines of several come together; otherwise empty.
  explicit Console(boost::asio::io_context& io, std::string host = "");

  OutputWriter& output() { return *output_; }
  OutputWriter& errors() { return errors_ ? *errors_ : *output_; }
  /// A line of elasticrun's own. Names in it may come from other processes.
  void say(const std::string& text);
  /// Lines to stderr as they are.
  void show(std::string lines);
  /// Whether children's output could not be written.
  bool has_lost_output() const { return !lost_.empty(); }
  /// Calls back when everything is written; `hurry`: after a second at the latest.
  void when_written(bool hurry, std::function<void()> done);

  static std::string line_of(const std::string& text, const std::string& host = "");

 private:
  void lose(const std::string& destination, int error);

  const std::string host_;
  boost::asio::steady_timer time_to_read_;
  std::set<std::string> lost_;  ///< destinations that did not take a line
  std::optional<OutputWriter> output_;
  std::optional<OutputWriter> errors_;  ///< none where both go to the same file
};

}  // namespace elastic::launcher
