#include <memory>
#include <mutex>

#include "base/handshake.hpp"
#include "elastic/elastic.hpp"

namespace elastic {

namespace {

/// The one default context behind the free functions.
struct DefaultContext {
  DefaultContext() { prepare_handshakes(); }

  std::mutex mutex;
  std::unique_ptr<Context> context;
  bool ended = false;
};

DefaultContext& instance() {
  static DefaultContext the;
  return the;
}

/// For programs that end without `shutdown`. What the context has loaded, such as NCCL, and what
/// that has loaded, is torn down as the process ends, last come first.
struct EndsBeforeWhatItLoaded {
  ~EndsBeforeWhatItLoaded() { instance().context.reset(); }
};

}  // namespace

void init(const Options& options) {
  DefaultContext& the = instance();
  const std::lock_guard<std::mutex> lock(the.mutex);
  if (the.context || the.ended) {
    throw Error(ErrorCode::kInvalidArgument, "elastic::init was called before; once per process");
  }
  the.context = std::make_unique<Context>(options);
  static const EndsBeforeWhatItLoaded at_exit;
}

void shutdown() {
  DefaultContext& the = instance();
  const std::lock_guard<std::mutex> lock(the.mutex);
  if (!the.context)
    throw Error(ErrorCode::kNotInitialized, "elastic::shutdown without elastic::init");
  the.context->shutdown();
  the.context.reset();
  the.ended = true;
}

Context& context() {
  DefaultContext& the = instance();
  const std::lock_guard<std::mutex> lock(the.mutex);
  if (!the.context) throw Error(ErrorCode::kNotInitialized, "call elastic::init first");
  return *the.context;
}

}  // namespace elastic
