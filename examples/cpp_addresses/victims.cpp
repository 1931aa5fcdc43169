// A C++17 extension module that takes formulas from kvformulas.capi: victims(sequences, blocks) and oldest(sequences).
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

namespace {

double (*preemption_score)(double, double, double);
double (*paged_attention_block_count)(double, double);
double (*kv_eviction_score_lru)(double, double);

// The signature is spelled from the pointer's own type, so a capsule of another one is refused by PyCapsule_GetPointer.
template <typename... Arguments>
bool load(PyObject *addresses, const char *name, double (*&formula)(Arguments...))
{
    static_assert((std::is_same_v<Arguments, double> && ...));
    std::string signature = "double (double";
    for (std::size_t i = 1; i < sizeof...(Arguments); i++)
        signature += ", double";
    signature += ")";

    PyObject *capsule = PyMapping_GetItemString(addresses, name);
    if (!capsule)
        return false;
    formula = reinterpret_cast<double (*)(Arguments...)>(PyCapsule_GetPointer(capsule, signature.c_str()));
    Py_DECREF(capsule);
    return formula != nullptr;
}

struct Sequence {
    Py_ssize_t index;
    double priority, generated, cached, last_used;
    double score() const { return preemption_score(priority, generated, cached); }
    double blocks() const { return paged_attention_block_count(cached, 16.0); }
};

bool read(PyObject *list, std::vector<Sequence> &sequences)
{
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        Sequence s{i, 0, 0, 0, 0};
        PyObject *row = PySequence_GetItem(list, i);
        bool good = row && PyTuple_Check(row) &&
                    PyArg_ParseTuple(row, "dddd", &s.priority, &s.generated, &s.cached, &s.last_used);
        Py_XDECREF(row);
        if (!good) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "a sequence is a tuple: priority, generated, cached, last_used");
            return false;
        }
        sequences.push_back(s);
    }
    return true;
}

PyObject *victims(PyObject *, PyObject *args)
{
    PyObject *list;
    double wanted;
    std::vector<Sequence> sequences;
    if (!PyArg_ParseTuple(args, "O!d", &PyList_Type, &list, &wanted) || !read(list, sequences))
        return nullptr;

    std::size_t count = 0;
    Py_BEGIN_ALLOW_THREADS
    std::sort(sequences.begin(), sequences.end(), [](const Sequence &a, const Sequence &b) {
        return a.score() > b.score() || (a.score() == b.score() && a.index < b.index);
    });
    for (double freed = 0.0; freed < wanted && count < sequences.size(); count++)
        freed += sequences[count].blocks();
    Py_END_ALLOW_THREADS

    PyObject *indices = PyList_New(static_cast<Py_ssize_t>(count));
    for (std::size_t i = 0; indices && i < count; i++)
        PyList_SetItem(indices, static_cast<Py_ssize_t>(i), PyLong_FromSsize_t(sequences[i].index));
    return indices;
}

PyObject *oldest(PyObject *, PyObject *args)
{
    PyObject *list;
    double now;
    std::vector<Sequence> sequences;
    if (!PyArg_ParseTuple(args, "O!d", &PyList_Type, &list, &now) || !read(list, sequences))
        return nullptr;
    auto found = std::max_element(sequences.begin(), sequences.end(), [now](const Sequence &a, const Sequence &b) {
        return kv_eviction_score_lru(a.last_used, now) < kv_eviction_score_lru(b.last_used, now);
    });
    if (found == sequences.end()) {
        PyErr_SetString(PyExc_ValueError, "no sequences");
        return nullptr;
    }
    return PyLong_FromSsize_t(found->index);
}

int on_import(PyObject *)
{
    PyObject *module = PyImport_ImportModule("kvformulas.capi");
    PyObject *addresses = module ? PyObject_GetAttrString(module, "__pyx_capi__") : nullptr;
    bool loaded = addresses && load(addresses, "preemption_score", preemption_score) &&
                  load(addresses, "paged_attention_block_count", paged_attention_block_count) &&
                  load(addresses, "kv_eviction_score_lru", kv_eviction_score_lru);
    Py_XDECREF(addresses);
    Py_XDECREF(module);
    return loaded ? 0 : -1;
}

PyMethodDef methods[] = {
    {"victims", victims, METH_VARARGS, "victims(sequences, blocks): whom to preempt, in order, to free that many blocks."},
    {"oldest", oldest, METH_VARARGS, "oldest(sequences, now): the one that was not used for longest."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void *>(on_import)},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "victims", nullptr, 0, methods, slots, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_victims() { return PyModuleDef_Init(&definition); }
