#include "base/exception_text.hpp"

#include "base/printable.hpp"

namespace elastic {

std::string text_of(const std::exception_ptr& exception) {
  constexpr std::size_t kShown = 300;
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    const std::string text = printable_name(error.what());
    return text.size() > kShown ? text.substr(0, kShown) + "..." : text;
  } catch (...) {
    return {};
  }
}

}  // namespace elastic
