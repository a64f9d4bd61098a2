#include "base/printable.hpp"

#include <string_view>

namespace elastic {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

/// C1 controls are two bytes in UTF-8: 0xc2, and this one. As a byte alone some terminals know
/// them.
bool is_control(unsigned char byte, unsigned char before) {
  return byte < 0x20 || byte == 0x7f || (byte >= 0x80 && byte < 0xa0 && before < 0x80) ||
         (byte >= 0x80 && byte < 0xa0 && before == 0xc2);
}

std::string escape(const std::string& text, std::string_view kept) {
  std::string made;
  unsigned char before = 0;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (is_control(byte, before) && kept.find(character) == std::string_view::npos) {
      made += "\\x";
      made += kHexDigits[byte >> 4U];
      made += kHexDigits[byte & 15U];
    } else {
      made += character;
    }
    before = byte;
  }
  return made;
}

}  // namespace

std::string printable(const std::string& text) {
  return escape(text, "\n\t");
}

std::string printable_name(const std::string& name) {
  return escape(name, "");
}

}  // namespace elastic
