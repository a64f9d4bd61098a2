#include "collectives/kernels/device/codec/image.hpp"

#ifdef ELASTIC_CODEC_IMAGE

// The file, between two symbols.
__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    ".hidden elastic_codec_image_begin\n"
    ".hidden elastic_codec_image_end\n"
    ".globl elastic_codec_image_begin\n"
    ".globl elastic_codec_image_end\n"
    "elastic_codec_image_begin:\n"
    ".incbin \"" ELASTIC_CODEC_IMAGE
    "\"\n"
    "elastic_codec_image_end:\n"
    ".popsection\n");
// NOLINTBEGIN(readability-identifier-naming): names of symbols
extern "C" {
extern const std::byte elastic_codec_image_begin[];
extern const std::byte elastic_codec_image_end[];
}
// NOLINTEND(readability-identifier-naming)

namespace elastic::kernels::codec {

std::span<const std::byte> image() {
  return {elastic_codec_image_begin, elastic_codec_image_end};
}

}  // namespace elastic::kernels::codec

#else

namespace elastic::kernels::codec {

std::span<const std::byte> image() {
  return {};
}

}  // namespace elastic::kernels::codec

#endif
