# How a Python argument becomes a double: any real number, and an error that names the argument.
# Exact ints are read directly: PyFloat_AsDouble would make a temporary float of each.
from cpython.exc cimport PyErr_Occurred
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_AsDouble, PyFloat_CheckExact
from cpython.long cimport PyLong_AsDouble, PyLong_CheckExact


cdef inline double real(object value, const char *name) except? -1.0:
    if PyFloat_CheckExact(value):
        return PyFloat_AS_DOUBLE(value)
    return _real(value, name)


cdef inline double _real(object value, const char *name) except? -1.0:
    try:
        if PyLong_CheckExact(value):
            return PyLong_AsDouble(value)
        return PyFloat_AsDouble(value)
    except OverflowError:
        if not hasattr(value, "bit_length"):
            raise
        raise OverflowError(f"{name.decode()} is too large for a double: an int of {value.bit_length()} bits") from None
    except TypeError:
        if hasattr(value, "__float__") or hasattr(value, "__index__"):
            raise
        raise TypeError(f"{name.decode()} must be a real number, not {type(value).__name__}: {value!r:.100}") from None
