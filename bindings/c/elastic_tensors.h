/* Tensors: their memory, the types of their elements, and what reductions do with them.
 * Programs include elastic.h. */
#ifndef ELASTIC_TENSORS_H
#define ELASTIC_TENSORS_H

#include "elastic_membership.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tensors -----------------------------------------------------------------------------------
 */

/* The numbers are those of elastic::DType, and never change. */
typedef int elastic_dtype;
enum {
  ELASTIC_F16 = 0,
  ELASTIC_BF16 = 1,
  ELASTIC_F32 = 2,
  ELASTIC_F64 = 3,
  ELASTIC_I8 = 4,
  ELASTIC_U8 = 5,
  ELASTIC_I32 = 6,
  ELASTIC_I64 = 7,
  ELASTIC_U32 = 8,
  ELASTIC_U64 = 9,
  ELASTIC_I16 = 10,
  ELASTIC_U16 = 11,
  ELASTIC_BOOL = 12 /* one byte, 0 or 1 */
};

/* Bytes of one element; 0 for a number that is no dtype. */
ELASTIC_C_API size_t elastic_dtype_size(elastic_dtype dtype);

typedef int elastic_op;
enum {
  ELASTIC_SUM = 0,
  ELASTIC_AVERAGE = 1, /* the sum over the number of contributors */
  ELASTIC_MIN = 2,
  ELASTIC_MAX = 3,
  ELASTIC_PRODUCT = 4,
  /* Since ELASTIC_ABI_VERSION 3: integers and bools bit by bit; whether elements of any type are
   * not 0, with the result 0 or 1; the adaptive sum of floats, for allreduces only. */
  ELASTIC_BIT_AND = 5,
  ELASTIC_BIT_OR = 6,
  ELASTIC_BIT_XOR = 7,
  ELASTIC_LOGICAL_AND = 8,
  ELASTIC_LOGICAL_OR = 9,
  ELASTIC_LOGICAL_XOR = 10,
  ELASTIC_ADASUM = 11,
  /* Since ELASTIC_ABI_VERSION 7: the adaptive sum of the averages of the hosts. */
  ELASTIC_HIERARCHICAL_ADASUM = 12
};

typedef int elastic_device;
enum { ELASTIC_HOST = 0, ELASTIC_CUDA = 1 };

/* `count` elements at `data`, which belong to the caller. Inputs are only read. */
typedef struct elastic_tensor {
  void* data;
  size_t count;
  elastic_dtype dtype;
  elastic_device device;
  int device_index; /* CUDA's number of the device; 0 for the host */
} elastic_tensor;

/* Memory that the other members on this host can read in place: see Context::allocate. */
typedef struct elastic_allocation elastic_allocation;
ELASTIC_C_API elastic_code elastic_allocate(elastic_context* context, size_t bytes,
                                            elastic_allocation** allocation);
ELASTIC_C_API void* elastic_allocation_data(const elastic_allocation* allocation);
ELASTIC_C_API void elastic_allocation_destroy(elastic_allocation* allocation);

#ifdef __cplusplus
}
#endif

#endif /* ELASTIC_TENSORS_H */
