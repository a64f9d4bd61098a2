#pragma once

namespace elastic {

/// A stream of CUDA: a cudaStream_t or CUstream as it is, so that no header of CUDA is needed here.
///
/// Calls that take tensors in the memory of a CUDA device take the stream that makes them:
/// - The device waits for work that was queued on the stream before the call. The calling thread
///   waits only as far as the call itself does. Work on other streams is not waited for: if a
///   tensor is made there, let the stream wait for an event of the other stream.
/// - When the call returns, or for an asynchronous one the Work is complete, the results lie in the
///   tensors: whatever is queued afterwards, on whichever stream, and the host see them. Until then
///   nothing else may touch the tensors, work that is queued on the stream meanwhile included.
/// - Calls cannot be captured into a CUDA graph.
///
/// The stream must be of the device that the tensors lie on, and of its primary context, which is
/// that of CUDA's runtime. It must live until the call returns, asynchronous calls too.
struct CudaStream {
  /// Null, and cudaStreamLegacy: the default stream of the device. A program that is compiled for
  /// default streams per thread passes a stream of its own: cudaStreamPerThread would be another
  /// one in the threads of the library, and is refused.
  void* handle = nullptr;
};

}  // namespace elastic
