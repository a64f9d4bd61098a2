#pragma once

#include <elastic/elastic.hpp>

namespace elastic::python {

/// The context that an object of Python uses: one that it was given, and that nb::keep_alive keeps,
/// or the default context, which may end before the object does.
class GivenOrDefaultContext {
 public:
  /// `given`: null for the default context.
  explicit GivenOrDefaultContext(Context* given) : given_(given) {}

  /// \throws Error kNotInitialized: there is no default context, or there is none any more.
  Context& get() const { return given_ != nullptr ? *given_ : elastic::context(); }

 private:
  Context* given_;
};

}  // namespace elastic::python
