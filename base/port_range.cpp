#include "base/port_range.hpp"

#include <charconv>
#include <string_view>

namespace elastic {

namespace {

/// 0 for what is no port.
std::uint16_t port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : 0;
}

}  // namespace

Result<PortRange> PortRange::parse(const std::string& text) {
  if (text.empty()) return PortRange{};
  const std::string_view whole = text;
  const auto dash = whole.find('-');
  const std::uint16_t first = port_of(whole.substr(0, dash));
  const std::uint16_t last =
      dash == std::string_view::npos ? first : port_of(whole.substr(dash + 1));
  if (first > 0 && first <= last) return PortRange{first, last};
  return Status(Code::kInvalidArgument,
                "'" + text + "' is not FIRST-LAST, ports from 1 to 65535, such as 40000-40099");
}

}  // namespace elastic
