#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace elastic::launcher {

/// Cuts a stream of bytes into lines. One that is longer than kMostBytes is passed on in pieces.
class LineSplitter {
 public:
  static constexpr std::size_t kMostBytes = 64 * 1024;
  /// Called with each line, without its end.
  using Handler = std::function<void(std::string_view)>;

  explicit LineSplitter(Handler handler) : handler_(std::move(handler)) {}

  void feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      pending_.append(bytes.substr(0, end));
      for (; pending_.size() > kMostBytes; pending_.erase(0, kMostBytes)) {
        handler_(std::string_view(pending_).substr(0, kMostBytes));
      }
      if (end == std::string_view::npos) return;
      handler_(pending_);
      pending_.clear();
      bytes.remove_prefix(end + 1);
    }
  }

  /// At the end of the stream: a last line without an end.
  void finish() {
    if (!pending_.empty()) handler_(pending_);
    pending_.clear();
  }

 private:
  Handler handler_;
  std::string pending_;
};

}  // namespace elastic::launcher
