#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/mutex.hpp"
#include "base/openssl_check.hpp"
#include "base/process_mark.hpp"
#include "elastic/elastic.hpp"
#include "runtime/end_before_init.hpp"
#include "runtime/raise.hpp"

namespace elastic {

/// The one default context behind the free functions.
struct DefaultContext {
  DefaultContext() { prepare_openssl(); }

  /// No call begins any more, and those of other threads end. The object stays for threads that
  /// have just asked for it.
  void end() {
    Context* leaving = nullptr;
    {
      const MutexLock lock(mutex);
      ended = true;
      leaving = context.get();
    }
    leaving->end();
  }

  Mutex mutex;
  std::unique_ptr<Context> context ELASTIC_GUARDED_BY(mutex);
  bool ended ELASTIC_GUARDED_BY(mutex) = false;
  std::atomic<bool> in_transition{false};  // a thread is in `init` or `shutdown`
  /// The process that called `init`; 0 before.
  std::atomic<std::uint64_t> process{0};
};

namespace {

/// Never destroyed: threads may call the library while the process exits.
DefaultContext& instance() {
  static auto* const the = new DefaultContext;
  return *the;
}

/// Throws in a forked child of that process. Called before taking a mutex, because another thread
/// of the parent may have held it at the fork.
void require_same_process(const DefaultContext& the) {
  const std::uint64_t process = the.process.load(std::memory_order_relaxed);
  if (process != 0) detail::require_process(process);
}

void require_context(const DefaultContext& the) ELASTIC_REQUIRES(the.mutex) {
  if (the.context && !the.ended) return;
  throw Error(ErrorCode::kNotInitialized,
              the.ended ? "this worker has left the job by elastic::shutdown; make all calls before"
                        : "call elastic::init first");
}

void require_no_context(DefaultContext& the) {
  const MutexLock lock(the.mutex);
  if (!the.context && !the.ended) return;
  throw Error(ErrorCode::kInvalidArgument, "elastic::init was called before; once per process");
}

/// The one call of `init` or `shutdown` under way. It holds no lock while it waits for the job:
/// other threads may ask for the context meanwhile, and get it or the error that there is none.
class Transition {
 public:
  explicit Transition(DefaultContext& the) : the_(the) {
    if (the_.in_transition.exchange(true)) {
      throw Error(
          ErrorCode::kInvalidArgument,
          "another thread is in elastic::init or elastic::shutdown; each is called once per "
          "process");
    }
  }
  ~Transition() { the_.in_transition = false; }
  Transition(const Transition&) = delete;
  Transition& operator=(const Transition&) = delete;

 private:
  DefaultContext& the_;
};

/// Ends the context of a program that ends without `shutdown`. At exit libraries are torn down in
/// the reverse order of their loading, so the context has to end before those that it has loaded,
/// such as NCCL.
struct EndsBeforeWhatItLoaded {
  ~EndsBeforeWhatItLoaded() {
    DefaultContext& the = instance();
    if (the.process.load(std::memory_order_relaxed) == process_mark()) the.end();
  }
};

}  // namespace

namespace {

/// Makes the default context. Returns how the job ended, if it did so before this worker could
/// join.
std::optional<RunOutcome> join(const Options& options) {
  DefaultContext& the = instance();
  require_same_process(the);
  const Transition transition(the);
  require_no_context(the);
  std::unique_ptr<Context> context;
  try {
    context = std::make_unique<Context>(options);
  } catch (const runtime::MustLeave& leave) {
    return leave.outcome;
  }
  const MutexLock lock(the.mutex);
  the.context = std::move(context);
  the.process.store(process_mark(), std::memory_order_relaxed);
  static const EndsBeforeWhatItLoaded at_exit;
  return std::nullopt;
}

}  // namespace

void init(const Options& options) {
  const std::optional<RunOutcome> over = join(options);
  if (!over) return;
  std::fprintf(stderr, "elastic: %s\n", runtime::end_before_init(*over));
  std::exit(EXIT_SUCCESS);
}

void shutdown() {
  DefaultContext& the = instance();
  require_same_process(the);
  const Transition transition(the);
  context().shutdown();
  the.end();
}

Context& context() {
  DefaultContext& the = instance();
  require_same_process(the);
  const MutexLock lock(the.mutex);
  require_context(the);
  return *the.context;
}

}  // namespace elastic
