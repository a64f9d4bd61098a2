#pragma once

/// Attributes that tell Clang which data a lock protects (-Wthread-safety). GCC has no such thing.
/// See https://clang.llvm.org/docs/ThreadSafetyAnalysis.html.
#if defined(__clang__)
#define ELASTIC_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define ELASTIC_THREAD_ANNOTATION(x)
#endif

/// A field that is read and written only while the mutex `x` is held.
#define ELASTIC_GUARDED_BY(x) ELASTIC_THREAD_ANNOTATION(guarded_by(x))
/// A function or a lambda whose caller holds these mutexes.
#define ELASTIC_REQUIRES(...) ELASTIC_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))

// For the classes of base/mutex.hpp.
#define ELASTIC_CAPABILITY(x) ELASTIC_THREAD_ANNOTATION(capability(x))
#define ELASTIC_SCOPED_CAPABILITY ELASTIC_THREAD_ANNOTATION(scoped_lockable)
#define ELASTIC_ACQUIRE(...) ELASTIC_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define ELASTIC_RELEASE(...) ELASTIC_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
