"""A worker that loads the C interface with nothing but the standard library.

    elasticrun -np 2 python3 ctypes_worker.py LIBRARY
"""

import array
import ctypes
import sys


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("dtype", ctypes.c_int),
        ("device", ctypes.c_int),
        ("device_index", ctypes.c_int),
    ]


F64, SUM = 3, 0

library = ctypes.CDLL(sys.argv[1])
library.elastic_last_error.restype = ctypes.c_char_p


def check(code):
    if code != 0:
        sys.exit(library.elastic_last_error().decode())


check(library.elastic_init(None))
values = array.array("d", [1.0, 10.0, 100.0])
tensor = Tensor(values.buffer_info()[0], len(values), F64, 0, 0)
check(library.elastic_allreduce(None, ctypes.byref(tensor), ctypes.byref(tensor), SUM, None, None))
print("rank", library.elastic_rank(None), "of", library.elastic_size(None), list(values))
check(library.elastic_shutdown())
